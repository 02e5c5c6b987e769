"""A small real OpenAI-compatible server: a real policy behind real HTTP, on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice, repeat

import torch

from engine.config.agents import SamplingConfig
from engine.inference.agents import inference_config
from engine.policy.generators.torch_generator import TorchGenerator
from engine.policy.models.load import load_policy

MODEL = "trees/oak"


class ModelServer(ThreadingHTTPServer):
    """Serves one policy under `/v1`.

    `failures` are HTTP statuses that the next completions get instead of an answer; 0 drops the
    connection. `at_prompt[N]` is called when the Nth prompt arrives. The `seed` of a request
    determines its answer. `key`, if set, must be presented; prompts of more than `context` tokens
    are refused, as by vLLM.
    """

    daemon_threads = False  # close waits for them: a thread that computes must not outlive Python

    def __init__(self, reference="starter:oak", key="", context=4096):
        super().__init__(("127.0.0.1", 0), Handler)
        self.policy = load_policy(reference)
        self.generator = TorchGenerator(
            self.policy.model, self.policy.end_ids, self.policy.pad_id, 0
        )
        self.key, self.context = key, context
        self.failures: list[int] = []
        self.prompts: list[list[dict]] = []
        self.at_prompt: dict[int, Callable[[], None]] = {}
        self.most_at_once = self._now = 0
        self._model, self._counts = threading.Lock(), threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def is_idle(self):
        """Whether it has answered every request, including those whose client has left."""
        return self._now == 0

    def fail(self, status, times):
        self.failures += islice(repeat(status), times)

    def complete(self, body):
        """(status, payload) of one chat completion."""
        with self._counts:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            failure = self.failures.pop(0) if self.failures else None
        try:
            return self._complete(body) if failure is None else (failure, refusal("try again"))
        finally:
            with self._counts:
                self._now -= 1

    def _complete(self, body):
        ids = self.policy.tokenizer.apply_chat_template(
            body["messages"], add_generation_prompt=True, return_dict=False
        )
        if len(ids) + body["max_tokens"] > self.context:
            return 400, refusal(f"the context length is only {self.context} tokens")
        self.prompts.append(body["messages"])
        self.at_prompt.pop(len(self.prompts), lambda: None)()
        sampling = SamplingConfig(
            temperature=body["temperature"],
            top_p=body["top_p"],
            top_k=body.get("top_k", 0),
            min_p=body.get("min_p", 0.0),
            max_new_tokens=body["max_tokens"],
        )
        with self._model, torch.inference_mode():
            seeds = [body["seed"]] if "seed" in body else None
            self.generator.reset_prefix_cache()
            (written,) = self.generator.generate([ids], sampling, 0, seeds)
        text = self.policy.tokenizer.decode(written.output_ids, skip_special_tokens=True)
        reason = "length" if written.stop == "max_tokens" else "stop"
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": len(ids), "completion_tokens": len(written.output_ids)}
        return 200, {"choices": [{"message": message, "finish_reason": reason}], "usage": usage}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


def refusal(message):
    return {"error": {"message": message}}


class Handler(BaseHTTPRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self._allowed():
            self._send(200, {"data": [{"id": MODEL}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self._allowed():
            self._send(*self.server.complete(body))

    def _allowed(self):
        if self.server.key and self.headers["authorization"] != f"Bearer {self.server.key}":
            self._send(401, refusal("no such key"))
            return False
        if self.path not in ("/v1/models", "/v1/chat/completions"):
            self._send(404, refusal("no such path"))
            return False
        return True

    def _send(self, status, payload):
        if status == 0:
            self.close_connection = True
            return
        data = json.dumps(payload).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def endpoints(server, *names, **settings):
    """Settings of agents that all use the one server."""
    references = [f"{name}={server.url}#{MODEL}" for name in names]
    short = {f"agents.{name}.sampling.max_new_tokens": 32 for name in names}
    return inference_config(references, short | settings)
