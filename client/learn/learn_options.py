"""What learn.py is told. Without torch, so that --help needs none."""
import argparse


def arguments():
    parser = argparse.ArgumentParser(description="A model learns through Sluice.")
    parser.add_argument("--model", required=True, metavar="FILE", help="a GGUF file of a llama model with tied embeddings")
    parser.add_argument("--server", required=True, metavar="PROGRAM", help="llama.cpp's llama-server")
    parser.add_argument("--out", required=True, metavar="DIR", help="checkpoint, metrics.jsonl, learn.svg; goes on with what is there")
    parser.add_argument("--port", type=int, default=8090, help="the engine's (8090)")
    parser.add_argument("--steps", type=int, default=15, help="updates of the weights in all (15)")
    parser.add_argument("--groups", type=int, default=6, help="groups of a batch (6)")
    parser.add_argument("--samples", type=int, default=8, help="rollouts of a group (8)")
    parser.add_argument("--ahead", type=int, default=0, help="batches sampled while the one before is learned from: 0 is on policy (0)")
    parser.add_argument("--held-out", type=int, default=9, help="rollouts of each of 24 held-out tasks, before and after (9)")
    parser.add_argument("--layers", type=int, default=10, help="of the model, the last ones, that are trained (10)")
    parser.add_argument("--rate", type=float, default=5e-5, help="AdamW's learning rate (5e-5)")
    parser.add_argument("--seed", type=int, default=0, help="of tasks and weights (0)")
    return parser.parse_args()


if __name__ == "__main__":
    arguments()
