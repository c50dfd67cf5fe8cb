"""Plans: settings, memory, reasons."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from tests.fakes.models import MINILM, SMOLLM2

from sampan import i18n
from sampan.errors import ExitCode, IncompatibleError, SampanError, UsageError
from sampan.plan import engine_memory, settings, summary
from sampan.plan.data import table
from sampan.plan.options import PlanOptions
from sampan.plan.planner import make_plan
from sampan.plan.sizes import human
from sampan.plan.variants import all_variants, missing
from sampan.spec import codec
from sampan.spec.plan import MemoryRow, Plan
from sampan.spec.target import GpuFacts, LimitsFacts, TargetProfile
from sampan.spec.weights import TensorBytes, WeightsInfo
from sampan.survey import known

GIB = 1024**3
KUNPENG = known.load("kylin-v10-sp3-kunpeng920")


def profile(memory_bytes: int | None = None, **cpu: Any) -> TargetProfile:
    """A Kunpeng server of which more is known."""
    return replace(KUNPENG, memory_bytes=memory_bytes, cpu=replace(KUNPENG.cpu, **cpu))


def test_an_embedding_model_gets_one_number_for_context_batch_and_ubatch() -> None:
    plan = make_plan(MINILM, KUNPENG)
    chosen = plan.settings
    assert chosen.context == chosen.batch == chosen.ubatch == 512
    assert (chosen.slots, chosen.unified_kv, chosen.embedding, chosen.pooling) == (8, True, True, "mean")
    assert chosen.cache_ram_mib == 0


def test_an_encoder_of_long_texts_takes_them_whole() -> None:
    long = replace(MINILM, context_length=8192)
    assert make_plan(long, KUNPENG).settings.ubatch == 8192
    assert make_plan(long, profile(4 * GIB)).settings.ubatch == 8192


BGE_M3 = replace(
    MINILM,
    name="bge-m3",
    context_length=8192,
    vocabulary=250_002,
    tokenizer="t5",
    embedding_length=1024,
    feed_forward_length=4096,
    heads=16,
    kv_heads=16,
    layers=24,
    quantization="Q4_K_M",
    size_bytes=436_935_040,
    parameters=567_000_000,
    pooling="cls",
    tensors=(TensorBytes("matrix", "Q4_K", 134_479_872), TensorBytes("other", "Q6_K", 296_451_712)),
)


def rows_of(plan: Plan) -> dict[str, int]:
    return {row.item: row.bytes for row in plan.memory}


def test_an_encoder_with_a_large_vocabulary_takes_its_longest_text_in_a_gigabyte() -> None:
    """A row of 250,000 logits for each of 8192 tokens would be 7.6 GiB; the engine is changed not to make them."""
    plan = make_plan(BGE_M3, profile(2 * GIB))
    assert plan.settings.ubatch == plan.settings.longest == 8192
    assert plan.memory_total_bytes < 1.1 * GIB
    assert rows_of(plan)["memory.output"] == 4 * 8192 * 1024


def test_a_reranker_still_pays_for_its_logits() -> None:
    ranker = replace(BGE_M3, task="rerank", pooling="rank")
    assert rows_of(make_plan(ranker, KUNPENG, PlanOptions(max_tokens=512)))["memory.output"] == 4 * 512 * (
        250_002 + 1024
    )


def test_what_does_not_fit_is_shortened_and_said() -> None:
    small = make_plan(BGE_M3, profile(720 << 20))
    assert 512 <= small.settings.longest < 8192
    reason = next(each for each in small.reasons if "context" in each.key)
    assert ("longest", str(small.settings.longest)) in reason.values
    with pytest.raises(IncompatibleError) as caught:
        make_plan(BGE_M3, profile(720 << 20), PlanOptions(max_tokens=8192))
    assert f"--max-tokens {small.settings.longest} " in caught.value.hint


QWEN3 = replace(MINILM, architecture="qwen3", context_length=32768, pooling="last", kv_heads=8, head_length=128)


def test_a_decoder_whose_vector_is_the_last_tokens_computes_long_texts_in_parts() -> None:
    """Qwen3-Embedding class: its states are kept, so a pass need not hold the whole text; one place is to spare."""
    chosen = make_plan(QWEN3, KUNPENG).settings
    assert (chosen.longest, chosen.slot_tokens, chosen.ubatch, chosen.unified_kv) == (8192, 8193, 512, False)
    assert chosen.context == chosen.slots * (8192 + 256)
    assert make_plan(QWEN3, KUNPENG, PlanOptions(max_tokens=32767)).settings.longest == 32767
    with pytest.raises(UsageError):
        make_plan(QWEN3, KUNPENG, PlanOptions(max_tokens=32768))


def test_a_decoder_with_another_pooling_needs_one_pass() -> None:
    mean = replace(QWEN3, pooling="mean")
    chosen = make_plan(mean, KUNPENG, PlanOptions(max_tokens=1000, concurrency=2)).settings
    assert (chosen.longest, chosen.slot_tokens, chosen.ubatch, chosen.context) == (1000, 1000, 1024, 2048)


def test_a_pass_is_a_multiple_of_the_slots() -> None:
    """llama-server 0c1e570 aborts at its start with --ubatch-size 512 --parallel 3 --pooling mean."""
    chosen = make_plan(MINILM, KUNPENG, PlanOptions(concurrency=3)).settings
    assert (chosen.ubatch, chosen.context, chosen.longest) == (513, 768, 512)


def test_the_heads_length_that_the_file_states_counts() -> None:
    plan = make_plan(QWEN3, KUNPENG, PlanOptions(max_tokens=1023, concurrency=1))
    assert rows_of(plan)["memory.kv"] == 2 * 6 * 8 * 128 * 1024 * 2


def test_what_the_engine_reorders_is_read_not_mapped() -> None:
    """A mapped file would stay in memory beside the copy."""
    arm, old = make_plan(BGE_M3, KUNPENG), make_plan(BGE_M3, known.load("kylin-v10-phytium-d2000"))
    assert (arm.settings.load_mode, old.settings.load_mode) == ("none", "mmap")
    mapped = make_plan(BGE_M3, KUNPENG, PlanOptions(load_mode="mmap"))
    assert rows_of(mapped)["memory.repacked"] == 134_479_872
    assert "memory.repacked" not in rows_of(arm)


def test_a_table_of_tokens_that_is_the_output_too_is_kept_twice_where_it_is_reordered() -> None:
    tied = replace(SMOLLM2, tensors=(TensorBytes("matrix", "Q4_0", 10**7), TensorBytes("tied", "Q4_0", 10**6)))
    assert rows_of(make_plan(tied, KUNPENG))["memory.repacked"] == 10**6
    assert rows_of(make_plan(tied, KUNPENG, PlanOptions(load_mode="mmap")))["memory.repacked"] == 11 * 10**6


def test_weights_are_locked_as_asked() -> None:
    modes = [make_plan(each, KUNPENG, PlanOptions(lock=True)).settings.load_mode for each in (BGE_M3, SMOLLM2)]
    assert modes == ["mlock", "mmap+mlock"]


@pytest.mark.parametrize(("memlock", "said"), [(65536, True), (-1, False), (None, False), (1 << 40, False)])
def test_a_limit_on_locked_memory_is_said_where_it_is_too_small(memlock: int | None, said: bool) -> None:
    target = replace(KUNPENG, limits=LimitsFacts(memlock=memlock))
    keys = {each.key for each in make_plan(BGE_M3, target, PlanOptions(lock=True)).notes}
    assert ("plan.rule.memlock" in keys) is said
    assert "plan.rule.memlock" not in {each.key for each in make_plan(BGE_M3, target).notes}


@pytest.mark.parametrize(("weights_", "logged_mib"), [("bge-m3", 128.25 + 49.22), ("smollm2", 28.69)])
def test_what_an_arm_build_reorders_is_counted(weights_: str, logged_mib: float) -> None:
    """`CPU_REPACK model buffer size` of the build armv8.2-dotprod-fp16, emulated, with the file mapped."""
    known_weights = {
        "bge-m3": replace(BGE_M3, tensors=(*BGE_M3.tensors, TensorBytes("matrix", "Q6_K", 51_609_600))),
        "smollm2": replace(SMOLLM2, tensors=(TensorBytes("tied", "Q8_0", 30_081_024),)),
    }
    plan = make_plan(known_weights[weights_], KUNPENG, PlanOptions(load_mode="mmap"))
    assert rows_of(plan)["memory.repacked"] / 2**20 == pytest.approx(logged_mib, rel=0.001)


def test_the_type_of_the_kv_cache_counts() -> None:
    sizes = [
        rows_of(make_plan(SMOLLM2, KUNPENG, PlanOptions(max_tokens=8192, concurrency=1, kv_type=kind)))["memory.kv"]
        for kind in ("f16", "q8_0", "q4_0")
    ]
    # `KV buffer size` of llama-server for this shape: 180, 95.62, 50.62 MiB
    assert [round(size / 2**20, 2) for size in sizes] == [180.0, 95.62, 50.62]


def test_cores_and_memory_that_are_granted_become_limits_of_the_service() -> None:
    plan = make_plan(MINILM, KUNPENG, PlanOptions(cores=6, memory_bytes=300 << 20))
    assert (plan.cpu_quota_percent, plan.memory_limit_bytes) == (600, 300 << 20)
    free = make_plan(MINILM, KUNPENG)
    assert free.cpu_quota_percent is None
    assert free.memory_limit_bytes is not None
    assert free.memory_limit_bytes > free.memory_total_bytes


def test_rules_of_experience_are_said_where_they_apply() -> None:
    seven = replace(SMOLLM2, parameters=7_000_000_000, size_bytes=4_000_000_000)
    said = [each for each in make_plan(seven, KUNPENG).notes if each.key == "plan.rule.size"]
    assert dict(said[0].values)["half"] == "14.0"
    assert (dict(said[0].values)["int4"], dict(said[0].values)["running"]) == ("3.5", "21.0")
    assert "plan.rule.fourbit" in {each.key for each in make_plan(BGE_M3, KUNPENG).notes}
    assert "plan.rule.fourbit" not in {each.key for each in make_plan(MINILM, KUNPENG).notes}
    cards = replace(KUNPENG, gpus=(GpuFacts("Tesla P4", "6.1"), GpuFacts("Tesla T4", "7.5"), GpuFacts("L20", "8.9")))
    keys = [each.key for each in make_plan(MINILM, cards).notes]
    assert keys.count("plan.rule.gpu-unused") == 3
    assert (keys.count("plan.rule.sm60"), keys.count("plan.rule.sm75")) == (1, 1)


def test_a_chat_model_gets_a_context_for_each_slot() -> None:
    chosen = make_plan(SMOLLM2, profile(16 * GIB)).settings
    assert (chosen.context, chosen.slots, chosen.unified_kv, chosen.embedding) == (4 * 8192, 4, False, False)
    assert (chosen.batch, chosen.ubatch, chosen.cache_ram_mib) == (2048, 512, 256)


def test_a_chat_model_shrinks_with_the_memory() -> None:
    sizes = [make_plan(SMOLLM2, profile(mib * 1024**2)).settings for mib in (4096, 1024, 700, 500, 400)]
    contexts = [chosen.context for chosen in sizes]
    assert contexts == sorted(contexts, reverse=True)
    assert sizes[-1].cache_ram_mib == 0


def test_without_known_memory_a_moderate_size_is_taken_and_said() -> None:
    plan = make_plan(SMOLLM2, KUNPENG)
    assert plan.settings.context == 2 * 4096
    assert plan.memory_available_bytes is None
    assert "plan.why.memory.unknown" in {reason.key for reason in plan.reasons}


def test_the_kv_cache_is_counted_as_the_engine_allocates_it() -> None:
    """llama-server logs `CPU KV buffer size = 180.00 MiB` for this model with a context of 8192."""
    plan = make_plan(SMOLLM2, KUNPENG)
    assert {row.item: row.bytes for row in plan.memory}["memory.kv"] == 180 * 1024**2


QWEN2 = replace(SMOLLM2, embedding_length=1536, feed_forward_length=8960, layers=28, heads=12, kv_heads=2)


@pytest.mark.parametrize(
    ("weights", "changes", "logged_mib"),
    [  # `sched_reserve: CPU compute buffer size` of llama-server 0c1e570
        (SMOLLM2, {"ubatch": 512, "context": 8192, "slots": 4, "unified_kv": False}, 15.51),
        (SMOLLM2, {"ubatch": 512, "context": 8192, "slots": 4, "unified_kv": True}, 21.51),
        (SMOLLM2, {"ubatch": 2048, "context": 2048, "slots": 1, "unified_kv": False}, 62.05),
        (MINILM, {"ubatch": 2048, "context": 2048}, 29.09),
        (MINILM, {"ubatch": 512, "context": 512}, 5.77),
        (MINILM, {"ubatch": 4096, "context": 4096}, 74.17),
        (BGE_M3, {"ubatch": 512, "context": 512}, 14.51),
        (BGE_M3, {"ubatch": 8192, "context": 8192}, 352.09),
        (QWEN2, {"ubatch": 512, "context": 4096, "slots": 1}, 68.51),
        (QWEN2, {"ubatch": 512, "context": 16384, "slots": 4, "unified_kv": True}, 80.51),
    ],
)
def test_the_compute_buffer_is_foretold(weights: WeightsInfo, changes: dict[str, Any], logged_mib: float) -> None:
    """multilingual-e5-small, whose shape per layer MiniLM has, was measured for the latter three."""
    chosen = replace(make_plan(weights, KUNPENG).settings, **changes)
    row: MemoryRow = next(row for row in engine_memory.rows(weights, chosen, ()) if row.item == "memory.compute")
    assert row.bytes / 1024**2 == pytest.approx(logged_mib, rel=0.005)


def test_the_cgroup_limit_counts_where_it_is_lower() -> None:
    limited = replace(profile(64 * GIB), memory_limit_bytes=GIB)
    assert make_plan(MINILM, limited).memory_available_bytes == GIB
    assert make_plan(MINILM, limited, PlanOptions(memory_bytes=2 * GIB)).memory_available_bytes == 2 * GIB


def test_what_does_not_fit_says_which_settings_would() -> None:
    options = PlanOptions(memory_bytes=400 * 1024**2, max_tokens=8192, concurrency=4)
    with pytest.raises(IncompatibleError) as caught:
        make_plan(SMOLLM2, KUNPENG, options)
    error = caught.value
    assert (error.key, error.exit_code) == ("plan.memory", ExitCode.INCOMPATIBLE)
    assert error.values["available"] == "400 MiB"
    here = [line for line in error.hint.splitlines() if "--quant" not in line]
    shown = re.findall(r"--max-tokens (\d+) --concurrency 1( --kv-type (\S+))?", "\n".join(here))
    assert [kind for _, _, kind in shown] == ["", "q8_0"]
    assert int(shown[0][0]) < int(shown[1][0])
    for tokens, _, kind in shown:
        make_plan(SMOLLM2, KUNPENG, replace(options, max_tokens=int(tokens), concurrency=1, kv_type=kind or None))


def test_weights_that_are_too_large_are_told_how_small_they_must_be() -> None:
    large = replace(SMOLLM2, size_bytes=8 * GIB, quantization="Q6_K", parameters=8 * 10**10)
    with pytest.raises(IncompatibleError) as caught:
        make_plan(large, KUNPENG, PlanOptions(memory_bytes=6 * GIB))
    assert "Q6_K, 8.0 GiB" in caught.value.hint
    found = re.search(r"at most ([\d.]+) GiB", caught.value.hint)
    assert found
    room = int(float(found[1]) * GIB)
    make_plan(replace(large, size_bytes=room), KUNPENG, PlanOptions(memory_bytes=6 * GIB))


def test_a_smaller_type_is_proposed_where_one_fits() -> None:
    seven = replace(SMOLLM2, parameters=7 * 10**9, size_bytes=14 * 10**9, quantization="F16")
    with pytest.raises(IncompatibleError) as caught:
        make_plan(seven, KUNPENG, PlanOptions(memory_bytes=6 * GIB))
    assert "--quant Q4_K_M --max-tokens 8192" in caught.value.hint
    assert "--quant Q8_0" not in caught.value.hint


def test_a_hopeless_machine_is_told_so() -> None:
    with pytest.raises(IncompatibleError) as caught:
        make_plan(SMOLLM2, KUNPENG, PlanOptions(memory_bytes=1024**2))
    assert "Even the smallest settings need" in caught.value.hint


def test_more_tokens_than_trained_for_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        make_plan(MINILM, KUNPENG, PlanOptions(max_tokens=513))
    assert caught.value.key == "plan.max-tokens"
    assert "--max-tokens 512" in caught.value.hint


def test_a_bad_name_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        make_plan(MINILM, KUNPENG, PlanOptions(name="../etc"))
    assert caught.value.key == "plan.name"


def test_threads_come_from_the_survey_or_are_left_to_the_target() -> None:
    assert make_plan(MINILM, KUNPENG).settings.threads == 0
    assert make_plan(MINILM, profile(cores=128, numa_nodes=4)).settings.threads == 31
    assert make_plan(MINILM, replace(profile(cores=8), cpu_quota=2.9)).settings.threads == 2
    assert make_plan(MINILM, KUNPENG, PlanOptions(cores=6)).settings.threads == 6


def test_names_ports_and_ids_are_taken_over() -> None:
    options = PlanOptions(name="faq", release=7, port=9000, model_id="text-embedding-3-small")
    plan = make_plan(MINILM, KUNPENG, options)
    assert (plan.name, plan.release, plan.port, plan.model) == ("faq", 7, 9000, "text-embedding-3-small")
    assert make_plan(MINILM, KUNPENG).name == "all-minilm-l6-v2-kylin-v10-sp3-kunpeng920"


def test_equal_inputs_give_equal_plans_and_read_back() -> None:
    plan = make_plan(SMOLLM2, KUNPENG)
    assert plan == make_plan(SMOLLM2, KUNPENG)
    assert codec.from_json(Plan, codec.to_json(plan), where="-") == plan


@pytest.mark.parametrize("language", i18n.LANGUAGES)
@pytest.mark.parametrize("weights", [MINILM, SMOLLM2, replace(MINILM, task="rerank", pooling="rank")])
@pytest.mark.parametrize("target", [KUNPENG, known.load("uos-20"), profile(8 * GIB, cores=8, numa_nodes=2)])
@pytest.mark.parametrize("options", [PlanOptions(), PlanOptions(memory_bytes=4 * GIB, cores=2, concurrency=2)])
def test_the_summary_gives_a_reason_for_each_decision(
    language: str, weights: WeightsInfo, target: TargetProfile, options: PlanOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(i18n._state, "language", language)
    plan = make_plan(weights, target, options)
    rows = summary.rows(plan)
    assert [row.item for row in rows if not row.why] == [rows[0].item, rows[1].item]
    shown = " ".join(part for row in (*rows, *summary.memory_rows(plan)) for part in row)
    assert "plan." not in shown
    assert "memory." not in shown
    assert summary.memory_rows(plan)[-1].value == human(plan.memory_total_bytes)


@pytest.mark.parametrize(("size", "text"), [(0, "0 B"), (2048, "2 KiB"), (5 << 20, "5 MiB"), (3 << 29, "1.5 GiB")])
def test_sizes_are_short(size: int, text: str) -> None:
    assert human(size) == text


ARCHITECTURES = st.sampled_from(["bert", "nomic-bert", "modern-bert", "llama", "qwen3"])


@st.composite
def models(draw: st.DrawFn) -> WeightsInfo:
    heads = draw(st.integers(1, 64))
    return replace(
        draw(st.sampled_from([MINILM, SMOLLM2])),
        architecture=draw(ARCHITECTURES),
        size_bytes=draw(st.integers(10**6, 10**11)),
        layers=draw(st.integers(1, 100)),
        heads=heads,
        kv_heads=draw(st.integers(1, heads)),
        embedding_length=heads * draw(st.sampled_from([32, 64, 128])),
        feed_forward_length=draw(st.integers(64, 32768)),
        context_length=draw(st.integers(64, 131072)),
        vocabulary=draw(st.integers(256, 300_000)),
    )


@st.composite
def targets(draw: st.DrawFn) -> TargetProfile:
    base = known.load(draw(st.sampled_from(known.names())))
    cpu = replace(
        base.cpu, cores=draw(st.none() | st.integers(1, 256)), numa_nodes=draw(st.none() | st.integers(1, 16))
    )
    return replace(
        base,
        cpu=cpu,
        memory_bytes=draw(st.none() | st.integers(2**26, 2**42)),
        memory_limit_bytes=draw(st.none() | st.integers(2**26, 2**42)),
        cpu_quota=draw(st.none() | st.floats(0.1, 256)),
    )


@st.composite
def choices(draw: st.DrawFn) -> PlanOptions:
    return PlanOptions(
        memory_bytes=draw(st.none() | st.integers(2**24, 2**42)),
        cores=draw(st.none() | st.integers(1, 256)),
        concurrency=draw(st.none() | st.integers(1, 64)),
        max_tokens=draw(st.none() | st.integers(1, 131072)),
    )


@examples(max_examples=50)
@given(models(), targets(), choices())
def test_every_plan_keeps_its_promises(weights: WeightsInfo, target: TargetProfile, options: PlanOptions) -> None:
    try:
        plan = make_plan(weights, target, options)
    except SampanError as error:
        assert error.key in {"plan.memory", "plan.max-tokens"}
        assert error.message
        assert error.hint
        return
    chosen = plan.settings
    assert chosen.slots >= 1
    seen = min(engine_memory.sequence_context(chosen), chosen.slot_tokens, weights.context_length)
    spare = 1 if settings.is_split(weights) or weights.task == "chat" else 0
    assert chosen.longest == seen - spare, "the engine takes exactly what is promised"
    assert chosen.ubatch <= chosen.batch <= chosen.context
    if options.max_tokens is not None:
        assert chosen.longest == options.max_tokens - (1 if weights.task == "chat" else 0)
    if chosen.embedding:
        assert chosen.ubatch % chosen.slots == 0, "the engine would abort at its start"
    if chosen.embedding and not settings.is_split(weights):
        assert chosen.ubatch >= chosen.longest
    assert plan.memory_total_bytes == sum(row.bytes for row in plan.memory)
    assert plan.memory_available_bytes is None or plan.memory_total_bytes <= plan.memory_available_bytes
    assert all(row.bytes > 0 for row in plan.memory)
    ranks = [variant.rank for variant in plan.variants]
    assert ranks == sorted(ranks)
    assert plan.variants[0] == next(each for each in all_variants() if each.arch == target.arch)
    if target.cpu.features_known:
        assert not any(missing(variant, set(target.cpu.features)) for variant in plan.variants)
    assert chosen.threads >= 0
    known_cores = options.cores is not None or target.cpu.cores is not None
    assert (chosen.threads > 0) == known_cores


def test_every_pass_is_a_multiple_that_the_engine_keeps() -> None:
    """Else it would round the context, and a slot would silently hold less than was planned."""
    step = table("plan.toml")["engine"]["context_step"]
    for tokens in (1, 255, 256, 257, 511):
        for weights in (MINILM, SMOLLM2, QWEN3):
            chosen = make_plan(weights, KUNPENG, PlanOptions(max_tokens=tokens, concurrency=3)).settings
            assert engine_memory.sequence_context(chosen) % step == 0


def test_the_encoders_are_architectures_that_the_engine_knows() -> None:
    facts = table("plan.toml")["engine"]
    assert set(facts["encoders"]) <= set(table("engine_architectures.toml")["architectures"])
    assert set(facts["plain_feed_forward"]) <= set(facts["encoders"])
