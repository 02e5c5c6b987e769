/**
 * Which of some chosen files are a model's, before any is sent: an upload may take an hour.
 *
 * The server's own lists decide: `names` are all names of files, `required` those that no model lacks, `shard` is the
 * pattern of weights in several files.
 */

const WEIGHTS = "model.safetensors";
const PICKLES = /\.(bin|pt|pth|ckpt|pkl|pickle|h5|msgpack)$/;

/**
 * Returns {taken, leftOut}: the files of the model, and the names of the others.
 *
 * Throws an error that names the file if one is missing, or the weights are pickled or those of an adapter.
 */
export function chosenFiles(files, { names, required, shard }) {
  const isShard = new RegExp(`^(?:${shard})$`);
  const isWeights = (name) => name === WEIGHTS || isShard.test(name);
  const isPart = (name) => names.includes(name) || isShard.test(name);
  const all = files.map((file) => file.name);
  if (!all.includes("config.json") && all.includes("adapter_config.json"))
    throw new Error("adapter_config.json: is an adapter (PEFT); merge it into its base model and upload the result.");
  if (!all.some(isWeights)) {
    const pickled = all.find((name) => PICKLES.test(name));
    if (pickled) throw new Error(`${pickled}: weights are accepted as safetensors only; save it as such.`);
  }
  const missing = required.find((name) => !all.includes(name)) ?? (all.some(isWeights) ? null : WEIGHTS);
  if (missing) throw new Error(`${missing}: is missing; choose all files of the model.`);
  const taken = files.filter((file) => isPart(file.name));
  return { taken, leftOut: all.filter((name) => !isPart(name)) };
}
