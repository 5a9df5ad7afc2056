"""python trl_example.py --model FILE --server PROGRAM --out DIR [OPTIONS OF learn_options.py]

What learn.py does, with TRL's GRPOTrainer (docs/trainers/trl.md): its loss, its optimizer, and its batches, of which it keeps
those groups too whose rewards are all equal. `bash client/learn.sh --trainer trl` runs it.
"""
import os
from itertools import islice

import weights
from datasets import Dataset
from held_out import evaluate
from learn_options import arguments
from learn_tasks import Tasks
from llama_server import LlamaServer
from policy import load_model, load_tokenizer
from sluice import Client
from sluice.adapters.trl import RolloutFunction, SluiceGRPOTrainer, rows, sluice_reward
from trl import GRPOConfig


def main():
    options = arguments()
    made = Tasks(options.seed)
    tasks = list({task["task"]: task for task in islice(made, 3000)}.values())
    model = load_model(options.model, options.layers)
    path = os.path.join(options.out, "weights.gguf")
    weights.write(model, options.model, path)
    patch, engine = weights.Patch(path), LlamaServer(options.server, options.port, os.path.join(options.out, "llama-server.log"))
    engine.start(path)

    def update(trainer):  # the engine's weights become the trainer's; Sluice holds its calls meanwhile
        engine.stop()
        patch(trainer.accelerator.unwrap_model(trainer.model))
        engine.start(path)

    args = GRPOConfig(output_dir=options.out, max_steps=options.steps, seed=options.seed, num_generations=options.samples,
                      per_device_train_batch_size=options.samples, gradient_accumulation_steps=options.groups,
                      learning_rate=options.rate, lr_scheduler_type="constant", adam_beta2=0.95, epsilon_high=0.28,
                      use_cpu=True, bf16=False, gradient_checkpointing=False, logging_steps=1, save_strategy="no", report_to=[])
    try:
        with Client() as client, Client() as reader:  # a client reads one stream at a time
            client.engine_add(engine.url)
            _, before = evaluate(reader, made, options, 0)
            trainer = SluiceGRPOTrainer(
                model=model, args=args, processing_class=load_tokenizer(options.model), reward_funcs=sluice_reward,
                train_dataset=Dataset.from_list(rows(tasks)), rollout_func=RolloutFunction(client, tasks, update=update))
            trainer.train()
            with client.updating(f"step-{options.steps}"):
                update(trainer)
            _, after = evaluate(reader, made, options, options.steps)
            client.engine_remove(engine.url)
    finally:
        engine.stop()
    print("reward by step:", *(f"{row['reward']:.3f}" for row in trainer.state.log_history if "reward" in row))
    print(f"held out {before:.3f} -> {after:.3f} ({after - before:+.3f})")


if __name__ == "__main__":
    main()
