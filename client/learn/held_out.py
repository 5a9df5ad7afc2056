"""How well the model does on tasks that it is never trained on: what the engine that serves now says to them."""
HELD_OUT = "learn-held-out"  # the stream


def scored(trajectories):
    """(trace, reward) of the rollouts that may be learned from. Faults of the service are none."""
    return [(t.traces[0], t.reward) for t in trajectories if t.trainable and t.reward is not None and t.traces]


def evaluate(client, tasks, options, step):
    """[step, the mean reward of the held-out tasks]; shows it, and a reply to the first one."""
    names = client.submit(tasks.held_out, stream=HELD_OUT, samples=options.held_out,
                          group=lambda task: f"s{options.seed}-step-{step}-{task['task']}")
    told = {}
    for group in client.groups(HELD_OUT):
        told[group.group] = group.trajectories
        if told.keys() >= set(names):
            break
    rewards = [reward for held_out in names for _, reward in scored(told[held_out])]
    said = next((message.content for message in told[names[0]][0].messages if message.sampled), "")
    mean = sum(rewards) / len(rewards)
    print(f"held out, at step {step}: {mean:.3f} of {len(rewards)} rollouts; to {tasks.held_out[0]['messages'][-1]['content']!r} it "
          f"says {said!r}", flush=True)
    return [step, mean]
