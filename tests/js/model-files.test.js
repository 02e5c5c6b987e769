import { chosenFiles } from "/static/js/lib/model-files.js";
import { equal, test } from "./check.js";

const LISTS = {
  names: ["config.json", "model.safetensors", "README.md"],
  required: ["config.json"],
  shard: "model-([0-9]{5,6})-of-([0-9]{5,6})\\.safetensors",
};
const chosen = (...names) => chosenFiles(names.map((name) => ({ name })), LISTS);

function refusal(...names) {
  try {
    chosen(...names);
  } catch (error) {
    return error.message;
  }
  return "";
}

test("files that are no part of a model are left out by name", () => {
  const { taken, leftOut } = chosen(".gitattributes", "config.json", "model.safetensors", "pytorch_model.bin");
  equal(taken, [{ name: "config.json" }, { name: "model.safetensors" }]);
  equal(leftOut, [".gitattributes", "pytorch_model.bin"]);
});

test("shards of five and six digits are weights", () => {
  const names = ["model-00001-of-00002.safetensors", "model-000001-of-000030.safetensors", "model-00001-of-000002.safetensors"];
  equal(chosen("config.json", ...names).leftOut, []);
  equal(chosen("config.json", names[0], "model-0001-of-0002.safetensors").leftOut.length, 1);
});

test("other weights alone and an adapter are refused by name", () => {
  equal(refusal("config.json", "pytorch_model.bin").startsWith("pytorch_model.bin: weights are accepted as"), true);
  equal(refusal("model.safetensors"), "config.json: is missing; choose all files of the model.");
  equal(refusal("config.json"), "model.safetensors: is missing; choose all files of the model.");
  equal(refusal("adapter_config.json", "adapter_model.safetensors").startsWith("adapter_config.json: is an adapter"), true);
});
