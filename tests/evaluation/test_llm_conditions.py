"""Conditions with a language model: same question, different evidence, and a run that resumes."""

import pytest
from misbehaving import MisbehavingServer, says, status
from wardround.agents.tokens import message_tokens
from wardround.evaluation.llm_asking import ask_of, llm_words, ranking_of
from wardround.evaluation.llm_conditions import (
    LLM_CONDITIONS,
    LlmCase,
    LlmRunner,
    Neighbour,
    read_log,
    sampled,
    tokens_of,
)
from wardround.models.llm import ServedLlm
from wardround.records.schema import OutpatientRecord

CHOICES = ("Gout", "Septic arthritis", "Pseudogout", "Reactive arthritis")
NEAR = tuple(Neighbour(f"r{i}", "Swollen first toe joint after a feast. " * 20, "Gout") for i in range(12))


def case(number=0, **more):
    known = {"choices": CHOICES, "neighbours": NEAR, "vote": (("Gout", 0.8), ("Pseudogout", 0.2))} | more
    return LlmCase(f"q{number}", f"Acute pain of the great toe, case {number}.", **known)


def run(server, name, cases, log=None, **more):
    return LlmRunner(ServedLlm(server.url, deadline_s=20), log=log, **more).run(name, cases)


@pytest.mark.parametrize("language", ["en", "zh", "ja"])
def test_every_language_has_its_words(language):
    assert "{shares}" in llm_words(language).vote


@pytest.mark.parametrize("name", LLM_CONDITIONS)
def test_each_condition_keeps_to_its_budget_and_shows_what_it_is_for(name):
    ask = ask_of(name, case(lane="standard"))
    condition = LLM_CONDITIONS[name]
    user = ask.messages[-1].content
    assert message_tokens(*(one.content for one in ask.messages)) <= condition.prompt_tokens + 100
    assert user.count("<record") == min(condition.records, len(NEAR))
    assert ("80%" in user) == condition.vote
    assert ("reasoning" in ask.schema["properties"]) == condition.reasoned
    assert all(choice in user for choice in CHOICES)


def test_an_unsure_routed_case_is_asked_to_reason():
    assert "reasoning" in ask_of("ours_llm", case(lane="deep")).schema["properties"]
    assert "reasoning" not in ask_of("ours_llm", case(lane="standard")).schema["properties"]


def test_the_gold_is_not_given_away_by_its_place():
    firsts = {ask_of("direct", case(number)).choices[0] for number in range(40)}
    assert firsts == set(CHOICES)
    assert ask_of("direct", case(1)).choices == ask_of("direct", case(1, choices=CHOICES[::-1])).choices


def test_choices_are_told_by_name_and_a_repeated_one_counts_once():
    assert ranking_of(
        {"first": "septic arthritis", "second": "Septic arthritis", "third": "Gout"}, CHOICES
    ) == ("Septic arthritis", "Gout")


@pytest.mark.parametrize("bad", [[], {}, {"first": "Z"}, {"first": ""}])
def test_an_answer_outside_the_choices_is_refused(bad):
    with pytest.raises(ValueError, match=r"JSON object|choices"):
        ranking_of(bad, CHOICES)


def test_without_choices_names_are_ranked():
    with MisbehavingServer(says({"first": "Gout", "second": "Pseudogout", "third": ""})) as server:
        (outcome,) = run(server, "direct", [case(choices=None)])
    assert outcome.ranking == ("Gout", "Pseudogout")


def test_a_confident_vote_costs_no_call():
    with MisbehavingServer(says({})) as server:
        (outcome,) = run(server, "ours_llm", [case(lane="vote")])
        assert server.asked == 0
    assert (outcome.lane, outcome.ranking, outcome.tokens.output) == ("vote", ("Gout", "Pseudogout"), 0)


def test_a_run_goes_on_where_it_stopped(tmp_path):
    log = tmp_path / "out" / "log.jsonl"
    cases = [case(number) for number in range(6)]
    with MisbehavingServer(
        says({"first": "Gout", "second": "Pseudogout", "third": "Septic arthritis"})
    ) as server:
        first = run(server, "direct", cases[:4], log)
        log.write_text(log.read_text(encoding="utf-8")[:-30], encoding="utf-8")  # killed while it wrote
        again = run(server, "direct", cases, log)
        assert server.asked == 4 + 1 + 2
    assert [one.ranking for one in again[:4]] == [one.ranking for one in first]
    assert len(read_log(log)) == 6


def test_another_prompt_is_asked_anew(tmp_path):
    log = tmp_path / "log.jsonl"
    with MisbehavingServer(
        says({"first": "Gout", "second": "Pseudogout", "third": "Septic arthritis"})
    ) as server:
        run(server, "naive_rag", [case()], log)
        run(server, "naive_rag", [case(neighbours=NEAR[:1])], log)
        run(server, "hybrid_rag", [case()], log)
        assert server.asked == 3


def test_a_failure_falls_back_to_the_vote_and_is_asked_again_next_time(tmp_path):
    log = tmp_path / "log.jsonl"
    with MisbehavingServer(
        status(500), says({"first": "Gout", "second": "Pseudogout", "third": "Septic arthritis"})
    ) as server:
        (failed,) = run(server, "ours_llm", [case(lane="standard")], log)
        (mended,) = run(server, "ours_llm", [case(lane="standard")], log)
    assert failed.degraded.startswith("http error")
    assert failed.ranking == ("Gout", "Pseudogout")
    assert mended.degraded is None


def test_tokens_are_summed():
    with MisbehavingServer(
        says({"first": "Gout", "second": "Pseudogout", "third": "Septic arthritis"})
    ) as server:
        outcomes = run(server, "direct", [case(1), case(2)])
    assert tokens_of(outcomes).prompt == 200


def test_a_sample_does_not_depend_on_the_order_of_the_file():
    ids = [f"q{number}" for number in range(50)]
    assert sampled(ids, 10) == sampled(ids[::-1], 10)
    assert sampled(ids, 10, seed=1) != sampled(ids, 10)


def test_a_case_never_carries_its_diagnosis():
    record = OutpatientRecord(
        id="q", text="Toe pain.", diagnoses=[{"name": "Zzyx disease"}], choices=["a", "b"]
    )
    assert "Zzyx" not in repr(LlmCase.of(record))
