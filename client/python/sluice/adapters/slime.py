"""slime: its custom generate and rollout functions, whose samples are Sluice's rollouts (docs/trainers/slime.md).

    --rollout-function-path sluice.adapters.slime.generate_rollout    whole groups; or, within slime's own loops,
    --custom-generate-function-path sluice.adapters.slime.generate    a rollout a sample
    --custom-reward-post-process-path sluice.adapters.slime.rewards   with either

Settings, in the file of --custom-config-path: sluice_stream ("slime"), sluice_broker ($SLUICE_BROKER), sluice_carry
(False), sluice_register (True).
"""

from __future__ import annotations

import asyncio
import copy
import functools
import math
import weakref
from collections import Counter
from typing import Any, Dict, List, Optional, Tuple

from ..advantages import dr_grpo, grpo
from ..errors import BadArgument
from ..trajectory import Trajectory
from .parts.rows import Row, rows, stand_ins
from .parts.said import texts
from .parts.sampling import asked_of, require_ratio, sampled_as
from .parts.shared import shared_rollouts
from .parts.versions import require
from .rollouts import Rollouts, task_of
from .tasks import may_have_several_traces

require("sluice.adapters.slime", "slime", "0.3.1", "0.4", "slime.rollout.base_types")
from slime.rollout.base_types import RolloutFnTrainOutput  # noqa: E402
from slime.utils.async_utils import run  # noqa: E402
from slime.utils.http_utils import get  # noqa: E402
from slime.utils.misc import load_function  # noqa: E402
from slime.utils.types import Sample  # noqa: E402

END = 0  # the token of a sample that is not learned from; any will do, with loss mask 0
HARMLESS = ("skip_special_tokens", "no_stop_trim", "spaces_between_special_tokens", "sampling_seed")
STATUS = {"stop": Sample.Status.COMPLETED, "length": Sample.Status.TRUNCATED, "abort": Sample.Status.ABORTED}
NORMALIZED = ("grpo", "gspo", "cispo", "reinforce_plus_plus_baseline")  # estimators of rewards normalized by group
REFUSED = {"use_rollout_routing_replay": "routed experts", "partial_rollout": "parts of a rollout",
           "reward_key": "rewards by name", "multimodal_keys": "images"}  # arguments that want what is not passed on

_registered: "weakref.WeakSet[asyncio.AbstractEventLoop]" = weakref.WeakSet()


# ---- samples ----------------------------------------------------------------------------------------


def _filled(sample: Any, trajectory: Trajectory, row: Row, place: int) -> Any:
    """A copy of slime's sample with a row of the rollout; place: the row's trace."""
    made = copy.copy(sample)
    made.tokens, made.response_length = row.prompt_ids + row.response_ids, len(row.response_ids)
    made.loss_mask, made.rollout_log_probs = row.loss_mask, row.logprobs
    made.status, made.rollout_id = STATUS[row.stop_reason], sample.index
    made.response = "\n".join(text for trace in trajectory.traces[place:place + 1] for text in texts(trajectory, trace).values())
    made.reward = trajectory.reward if trajectory.trainable else None
    made.remove_sample = row.stop_reason == "abort"
    turns = [] if made.remove_sample else trajectory.traces[place].turns
    replies = [turn for turn in turns if turn.role == "assistant"]
    made.weight_versions = [turn.version for turn in replies if turn.version]
    made.prefix_cache_info = Sample.PrefixCacheInfo(sum(turn.cached_tokens for turn in replies),
                                                    sum(turn.prompt_tokens for turn in replies))
    made.non_generation_time = sum(turn.seconds for turn in turns if turn.role != "assistant")
    said = {name: getattr(trajectory, name) for name in ("rollout", "outcome", "detail", "end", "rewards", "metrics")}
    made.metadata = {**(sample.metadata or {}), "sluice": said}
    return made


def samples_of(trajectory: Trajectory, sample: Any, evaluation: bool = False) -> List[Any]:
    """slime's Samples of a rollout, one of each trace with a sampled token, all with one rollout_id.

    sample: what slime asked for. A rollout that is trainable and has no reward has None: slime's reward model scores
    it. One that is not trainable, or has no sampled token, is one of a single token that remove_sample masks, ABORTED,
    without a reward. SluiceError: log-probabilities that cannot be learned from, but for an evaluation.
    """
    for trace in trajectory.traces if trajectory.trainable and not evaluation else ():
        require_ratio(trajectory, trace)
    places = [place for place, trace in enumerate(trajectory.traces) if trace.mask.any()] or [0]
    return [_filled(sample, trajectory, row, place)
            for row, place in zip(rows(trajectory, END, step_wise=True, unscored=True), places)]


def _reward(sample: Any) -> Optional[float]:
    """None: it has none to learn from."""
    return None if sample.status == Sample.Status.ABORTED else sample.reward


def rewards(args: Any, samples: List[Any]) -> Tuple[List[float], List[float]]:
    """For --custom-reward-post-process-path: as slime's own, of each group's rollouts that have a reward.

    Rollouts of several samples count once, and groups may be of any size. What has no reward is in no mean and gets 0;
    among the raw ones, for logs, it has its group's mean.
    """
    keys = [(one.group_index, one.index if one.rollout_id is None else one.rollout_id) for one in samples]
    own = {key: _reward(sample) for key, sample in zip(keys, samples)}  # of each rollout
    raw = dict(zip(own, stand_ins(list(own.values()), [group for group, _ in own])))
    told = dict(raw)
    if args.advantage_estimator in NORMALIZED and args.rewards_normalization:
        has_std = args.advantage_estimator != "reinforce_plus_plus_baseline" and args.grpo_std_normalization
        estimate = functools.partial(grpo, epsilon=1e-6) if has_std else dr_grpo
        for group in {group for group, _ in own}:
            its = [key for key in own if key[0] == group]
            told.update(zip(its, estimate([own[key] for key in its]).values.tolist()))
    return [raw[key] for key in keys], [told[key] for key in keys]


# ---- rollouts ---------------------------------------------------------------------------------------


async def _rollouts(args: Any) -> Rollouts:
    """The stream's, on slime's event loop; slime's servers are the broker's engines then."""
    if not args.custom_reward_post_process_path:
        raise BadArgument("custom_reward_post_process_path: a rollout may end without a reward, which slime's own "
                          "normalization cannot leave out: give sluice.adapters.slime.rewards, or one of your own",
                          "custom_reward_post_process_path")
    for name, what in REFUSED.items():
        if getattr(args, name, None):
            raise BadArgument(f"{name}: Sluice's adapter passes on no {what}: leave it out", name)
    rollouts = shared_rollouts(getattr(args, "sluice_stream", "slime"), getattr(args, "sluice_broker", None), {})
    loop = asyncio.get_running_loop()
    if getattr(args, "sluice_register", True) and loop not in _registered:
        _registered.add(loop)
        told = await get(f"http://{args.sglang_router_ip}:{args.sglang_router_port}/workers")
        for worker in told["workers"]:
            await rollouts.client.engine_add(worker["url"])
    return rollouts


def _task(sample: Any, params: Dict[str, Any], evaluation: bool = False) -> Dict[str, Any]:
    """The task of the sample's row, sampled as slime says."""
    if params["top_p"] not in (None, 1) and not evaluation:
        raise BadArgument("rollout_top_p: slime wants the tokens that a filter kept, which Sluice's rollouts do not "
                          "have: set it to 1", "rollout_top_p")
    return sampled_as(task_of({"metadata": sample.metadata}), asked_of(params, "max_new_tokens", HARMLESS),
                      "slime's rollout arguments")


async def generate(args: Any, sample: Any, sampling_params: Dict[str, Any], evaluation: bool = False) -> Any:
    """For --custom-generate-function-path: one rollout of the task in the sample's metadata["task"].

    Of a task that may have several traces it is a list of Samples; in an evaluation the last, so that each rollout
    counts once. One that is not trainable is ABORTED, with a reward that is no number.
    """
    rollouts = await _rollouts(args)
    task = _task(sample, sampling_params, evaluation)
    made = samples_of((await rollouts.run(task))[0], sample, evaluation)
    for one in made:
        if one.status == Sample.Status.ABORTED:
            one.reward = math.nan
    return made if may_have_several_traces(task) and not evaluation else made[-1]


class Pool:
    """Groups that are being rolled out, which with sluice_carry go on from one call to the next."""

    def __init__(self, args: Any, rollouts: Rollouts) -> None:
        self.args, self.rollouts = args, rollouts
        self.pending: Dict[asyncio.Task[List[Any]], List[Any]] = {}  # with slime's samples

    def begin(self, group: List[Any]) -> None:
        args = self.args
        params = {"temperature": args.rollout_temperature, "top_p": args.rollout_top_p, "top_k": args.rollout_top_k,
                  "max_new_tokens": args.rollout_max_response_len, "stop": args.rollout_stop,
                  "stop_token_ids": args.rollout_stop_token_ids}
        task = _task(group[0], params)
        self.pending[asyncio.ensure_future(self._roll(task, group))] = group

    async def _roll(self, task: Dict[str, Any], group: List[Any]) -> List[Any]:
        trajectories = await self.rollouts.run(task, samples=len(group))
        made = [one for t, sample in zip(trajectories, group) for one in samples_of(t, sample)]
        learned = [one for one in made if one.status != Sample.Status.ABORTED]
        asked = learned if self.args.group_rm else [one for one in learned if one.reward is None]
        if asked:
            from slime.rollout.rm_hub import batched_async_rm
            for one, reward in zip(asked, await batched_async_rm(self.args, asked)):
                one.reward = reward
        return made

    async def next(self) -> List[Any]:
        """The samples of a group that has ended."""
        if not any(task.done() for task in self.pending):
            await asyncio.wait(self.pending, return_when=asyncio.FIRST_COMPLETED)
        task = next(task for task in self.pending if task.done())
        del self.pending[task]
        return task.result()

    async def end(self) -> List[List[Any]]:
        """Cancels what is left, and returns what slime had asked for."""
        left, self.pending = self.pending, {}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return list(left.values())


_pools: "weakref.WeakKeyDictionary[Any, Pool]" = weakref.WeakKeyDictionary()  # by data source


def _stand_in(group: List[Any]) -> bool:
    """Gives what has no reward its group's mean; False: none of the group has one."""
    told = [_reward(one) for one in group]
    for one, reward in zip(group, stand_ins(told, [0] * len(group))):
        one.reward = reward
    return any(reward is not None for reward in told)


async def _collect(args: Any, data_source: Any) -> Tuple[List[List[Any]], List[List[Any]], Counter[str]]:
    """Groups to learn from, all that ended, and why the others were dropped."""
    from slime.rollout.filter_hub.base_types import call_dynamic_filter, should_drop_dynamic_filter_output

    pool = _pools.setdefault(data_source, Pool(args, await _rollouts(args)))
    wanted = load_function(args.dynamic_sampling_filter_path) if args.dynamic_sampling_filter_path else None
    carries = getattr(args, "sluice_carry", False)
    kept: List[List[Any]] = []
    ended: List[List[Any]] = []
    dropped: Counter[str] = Counter()
    try:
        while len(kept) < args.rollout_batch_size:
            if len(pool.pending) + (0 if carries else len(kept)) < args.rollout_batch_size:
                for group in data_source.get_samples(args.over_sampling_batch_size):
                    pool.begin(group)
            group = await pool.next()
            ended.append(group)
            if not _stand_in(group):
                dropped["sluice_unscored"] += 1
                continue
            told = call_dynamic_filter(wanted, args, group)
            if should_drop_dynamic_filter_output(told, remaining_batch_size=len(pool.pending) + len(kept) + 1,
                                                 target_data_size=args.rollout_batch_size):
                dropped[told.reason or "filter"] += 1
            else:
                kept.append(group)
    finally:
        if not carries or len(kept) < args.rollout_batch_size:
            left = await pool.end()
            if left and hasattr(data_source, "buffer"):
                data_source.add_samples(left)
    return kept, ended, dropped


def generate_rollout(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> Any:
    """For --rollout-function-path: rollout_batch_size groups of rollouts, each of one task."""
    if evaluation:
        raise BadArgument("eval_function_path: evaluations are slime's own loop: give "
                          "slime.rollout.sglang_rollout.generate_rollout there, and sluice.adapters.slime.generate as "
                          "custom_generate_function_path", "eval_function_path")
    kept, ended, dropped = run(_collect(args, data_source))
    kept.sort(key=lambda group: group[0].index)
    if args.rollout_sample_filter_path is not None:
        load_function(args.rollout_sample_filter_path)(args, kept)
    if args.rollout_all_samples_process_path is not None:
        load_function(args.rollout_all_samples_process_path)(args, ended, data_source)
    metrics = {f"rollout/dynamic_filter/drop_{reason}": count for reason, count in dropped.items()}
    left_out = sum(one.remove_sample for group in kept for one in group)
    return RolloutFnTrainOutput(samples=kept, metrics={**metrics, "rollout/sluice/left_out": left_out})
