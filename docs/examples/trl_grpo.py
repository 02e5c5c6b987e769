"""Program that trains a starter by TRL's GRPO, and logs it as to W&B: only the first lines differ.

pip install 'grove-rl[engine]' trl==1.16.0 pandas
export GROVE_ADDRESS=http://localhost:8000 GROVE_TOKEN=grove_...
python docs/examples/trl_grpo.py
"""

import argparse
import tempfile

import grove as wandb
from grove.integrations.wandb import install

install()  # transformers and TRL `import wandb` themselves: from here on that is Grove

from datasets import Dataset  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402
from trl import GRPOConfig, GRPOTrainer  # noqa: E402

from engine.policy.starters import starter_directory  # noqa: E402
from grove.integrations.trl import follow  # noqa: E402


def different_letters(completions: list[str], **_: object) -> list[float]:
    """Reward: the share of 20 different characters that an answer has."""
    return [min(1.0, len(set(one)) / 20) for one in completions]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--id", help="id of the run")
    given = parser.parse_args()
    wandb.init(project=None, id=given.id, name="GRPO with TRL", tags=["oak"])
    wandb.config.update({"reward": "different letters"}, allow_val_change=True)
    starter = starter_directory("oak")
    with tempfile.TemporaryDirectory() as folder:
        args = GRPOConfig(
            folder, report_to="wandb", log_completions=True, logging_steps=1,
            max_steps=given.steps, per_device_train_batch_size=12, num_generations=6,
            max_completion_length=24, use_cpu=True, bf16=False, gradient_checkpointing=False,
            dataloader_pin_memory=False, save_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        trainer = GRPOTrainer(
            AutoModelForCausalLM.from_pretrained(starter),
            different_letters,
            args=args,
            train_dataset=Dataset.from_list(
                [{"prompt": f"def solve(x):  # {number}\n"} for number in range(12)]
            ),
            processing_class=AutoTokenizer.from_pretrained(starter),
        )
        follow(trainer)  # each prompt's group becomes a tree of its step
        trainer.train()
    wandb.finish()


if __name__ == "__main__":
    main()
