"""Tests of machine samples: GPUs by NVML, disk and network by the kernel, all nodes by Ray."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import msgspec
import psutil
import pytest
import ray
from ray.cluster_utils import Cluster

from engine.events.log import EventLog, read_all
from engine.events.timeline import figures
from engine.events.vocabulary import LogLine, SystemSample
from engine.run.cluster_readings import ClusterReader
from engine.run.gpus import GpuReader
from engine.run.node_readings import NodeReader
from engine.run.system_samples import SystemSampler, sampling
from tests.helpers.clusters import BARE
from tests.helpers.waiting import eventually

RECORDED = [
    {"utilization": {"gpu": 97, "memory": 54}, "power_mw": 642_318,
     "memory": {"total": 85_520_809_984, "used": 61_203_283_968, "free": 24_317_526_016}},
    {"utilization": {"gpu": 0, "memory": 0}, "power_mw": None,
     "memory": {"total": 85_520_809_984, "used": 8_388_608, "free": 85_512_421_376}},
]  # fmt: skip
"""Responses as by NVML for two devices, of which the second reports no power."""


class Recorded:
    """The functions of `pynvml` in use, answered from a recording."""

    class NVMLError(Exception):
        pass

    def __init__(self, devices, has_driver=True):
        self.devices, self.has_driver = devices, has_driver

    def nvmlInit(self):
        if not self.has_driver:
            raise self.NVMLError("Driver Not Loaded")

    def nvmlDeviceGetCount(self):
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index):
        return self.devices[index]

    def nvmlDeviceGetUtilizationRates(self, device):
        return SimpleNamespace(**device["utilization"])

    def nvmlDeviceGetMemoryInfo(self, device):
        return SimpleNamespace(**device["memory"])

    def nvmlDeviceGetPowerUsage(self, device):
        if device["power_mw"] is None:
            raise self.NVMLError("Not Supported")
        return device["power_mw"]


def test_gpus_are_reported_by_device_without_unreported_fields():
    result = NodeReader(gpus=GpuReader(Recorded(RECORDED))).read()
    assert {name: value for name, value in result.items() if name.startswith("gpu")} == {
        "gpu_percent:0": 97.0, "gpu_memory_mb:0": 58368.0, "gpu_memory_percent:0": 71.6,
        "gpu_power_w:0": 642.3,
        "gpu_percent:1": 0.0, "gpu_memory_mb:1": 8.0, "gpu_memory_percent:1": 0.0,
    }  # fmt: skip


def test_without_a_driver_or_a_device_there_are_no_gpus():
    assert GpuReader(Recorded(RECORDED, has_driver=False)).read() == []
    assert GpuReader(Recorded([])).read() == []
    assert isinstance(GpuReader().read(), list), "whatever this machine has"


def test_disk_and_network_are_reported_as_rates_since_the_last_reading(tmp_path):
    moments = iter([0.0, 4.0])
    before, network = psutil.net_io_counters(), "node_network_in_mb_per_s"
    reader = NodeReader(tmp_path, GpuReader(Recorded([])), clock=lambda: next(moments))
    first = reader.read()
    assert not [name for name in first if name.endswith("per_s")]
    assert 0 < first["node_memory_percent"] <= 100 and first["node_disk_free_gb"] > 0
    second = reader.read()
    came = psutil.net_io_counters().bytes_recv - before.bytes_recv
    assert 0 <= second[network] <= came / 2**20 / 4.0 + 0.001
    assert 0 <= second["node_cpu_percent"] <= 100


def test_a_sample_says_so_of_each_node_and_is_cheap(tmp_path):
    sampler = SystemSampler(tmp_path)
    began = time.thread_time()
    sample = sampler.sample()
    assert time.thread_time() - began < 0.5
    assert sample.by_node["node_cpu_percent.node0"] >= 0
    log = EventLog(tmp_path)
    log.append(sample)
    log.close()
    (event,) = read_all(tmp_path)
    assert event.typed() == sample
    old = msgspec.convert({"type": "system.sample", "cpu_percent": 1, "memory_mb": 2}, SystemSample)
    assert old.by_node == {}


def samples(folder):
    return [event for event in read_all(folder) if event.kind == "system.sample"]


def has_ended():
    """Whether the thread has ended that takes samples: it will not append another."""
    return all(thread.name != "system-sampler" for thread in threading.enumerate())


def test_samples_are_taken_while_the_loop_waits_and_no_line_of_it_is_torn(tmp_path):
    """A loop that logs as fast as it can, and one that does nothing."""
    log = EventLog(tmp_path)
    began = time.monotonic()
    with sampling(log, tmp_path, every=0.05, first=0.05):
        numbers = [log.append(LogLine("info", f"line {number}")) for number in range(20_000)]
        eventually(lambda: len(samples(tmp_path)) >= 4, "samples beside a busy loop")
        more = len(samples(tmp_path)) + 3
        eventually(lambda: len(samples(tmp_path)) >= more, "samples of one long step")
    ended, seconds = log.seq, time.monotonic() - began
    eventually(has_ended, "the end of the samples")
    assert log.seq == ended, "nothing is appended once the run has ended"
    log.close()
    events = list(read_all(tmp_path))
    assert [event.seq for event in events] == list(range(1, ended + 1))
    lines = {e.seq: e.payload["message"] for e in events if e.kind == "log.line"}
    assert lines == {seq: f"line {number}" for number, seq in enumerate(numbers)}
    assert figures(events) == []
    assert len(samples(tmp_path)) <= seconds / 0.05, "a moment that was missed is not made up for"


def test_a_reading_that_fails_ends_the_samples_and_says_why(tmp_path):
    log = EventLog(tmp_path)
    with sampling(log, tmp_path / "gone", every=0.05, first=0.0):
        eventually(lambda: log.seq, "the reason")
        eventually(has_ended, "the end of the samples")
    log.close()
    (line,) = read_all(tmp_path)
    assert line.payload["level"] == "warning" and "gone" in line.payload["message"]


@pytest.fixture
def two_nodes(ray_folder):
    cluster = Cluster()
    for _ in range(2):
        cluster.add_node(num_cpus=1, **BARE)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@contextmanager
def frozen(nodes):
    """These nodes are frozen within the block, for less time than Ray tolerates."""
    pids = [node.all_processes["raylet"][0].process.pid for node in nodes]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.large
@pytest.mark.service
def test_every_cluster_node_is_reported_without_waiting_for_any(two_nodes, tmp_path):
    reader = ClusterReader(tmp_path)
    with frozen(two_nodes.worker_nodes):
        # No actor can start there, so a reading that waited for one would not end.
        assert "node_cpu_percent.node1" not in reader.read()
    eventually(lambda: "node_cpu_percent.node1" in reader.read(), "the other node")
    result = reader.read()
    assert {name.partition(".")[2] for name in result} <= {"node0", "node1"}
    assert result["node_cpu_percent.node0"] >= 0
