"""Check that the corpus is well-formed. What the product makes of it is tested beside the product's code."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.near_misses import corpus
from tests.near_misses.corpus import CLASSES, DISTANCES, bare, near_misses, paraphrases, records
from tests.near_misses.turned import HELD_OUT, MAKERS, by_hand, made


def test_records_have_their_own_words_and_an_answer() -> None:
    assert len(records()) == 60
    assert len({record.id for record in records()}) == 60
    assert all(record.answer and record.presumes and len(record.aliases) <= 3 for record in records())
    wordings = Counter(bare([words]) for record in records() for words in record.wordings)
    assert not [words for words, times in wordings.items() if times > 1]
    assert 0.1 <= sum(record.english for record in records()) / len(records()) <= 0.2


def test_each_class_has_enough_near_misses() -> None:
    counts = Counter(pair.kind for pair in near_misses())
    assert counts.keys() == CLASSES.keys()
    assert min(counts.values()) >= 120
    assert len(near_misses()) >= 2000


def test_near_misses_are_whole() -> None:
    known = {record.id for record in records()}
    assert len({pair.id for pair in near_misses()}) == len(near_misses())
    for pair in near_misses():
        assert pair.record in known, pair
        assert pair.other in known | {""}, pair
        assert pair.other != pair.record, pair
        assert 1 <= len(pair.messages) <= 3, pair
        assert all(message and message == message.strip() for message in pair.messages), pair
        assert pair.why, pair


def test_a_record_has_each_pair_once() -> None:
    pairs = Counter((pair.record, pair.messages) for pair in near_misses())
    assert not [pair for pair, times in pairs.items() if times > 1]


def test_no_near_miss_is_a_wording_or_a_paraphrase() -> None:
    fair = {bare([words]) for record in records() for words in record.wordings}
    fair |= {bare(paraphrase.messages) for paraphrase in paraphrases()}
    assert not [pair for pair in near_misses() if bare(pair.messages) in fair]


def test_each_record_has_paraphrases_of_all_distances() -> None:
    assert len(paraphrases()) >= 240
    for record in records():
        own = [paraphrase for paraphrase in paraphrases() if paraphrase.record == record.id]
        assert len(own) >= 4, record.id
        assert {paraphrase.distance for paraphrase in own} == set(DISTANCES), record.id
        assert all(1 <= len(paraphrase.messages) <= 3 for paraphrase in own), record.id


def test_words_belong_to_one_record() -> None:
    owners: dict[str, set[str]] = {}
    for record in records():
        for words in record.wordings:
            owners.setdefault(bare([words]), set()).add(record.id)
    for paraphrase in paraphrases():
        owners.setdefault(bare(paraphrase.messages), set()).add(paraphrase.record)
    assert not {words: ids for words, ids in owners.items() if len(ids) > 1}


def test_every_swap_and_class_of_the_data_is_used() -> None:
    for entry in corpus._entries():
        assert entry.get("swap", {}).keys() | entry["near"].keys() <= CLASSES.keys(), entry["id"]
        wordings = (entry["question"], *entry["aliases"], *entry["light"], *entry["middle"])
        for swaps in entry.get("swap", {}).values():
            for swap in swaps:
                assert any(swap.partition(" -> ")[0] in words for words in wordings), (entry["id"], swap)


def test_signs_are_kept_when_words_are_compared() -> None:
    assert bare(["亲，S23的膜有吗？谢谢"]) == bare(["在吗", "S23 的膜有吗"])
    assert bare(["S23+的膜有吗"]) != bare(["S23的膜有吗"])
    assert bare(["5-6岁"]) != bare(["56岁"])
    assert bare(["Hello, is this it? Thanks"]) == bare(["is this it"])


def test_another_process_makes_the_same_corpus() -> None:
    root = Path(__file__).parents[2]
    written = [
        subprocess.run(
            [sys.executable, "-m", "tests.near_misses.corpus", "near_misses"],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert written[0] == written[1]
    assert len(written[0].splitlines()) == len(near_misses())


def test_what_one_word_turns_is_made_of_every_record_and_written_for_every_record() -> None:
    known = {record.id: record.shop for record in records()}
    assert {pair.record for pair in made()} == {pair.record for pair in by_hand()} == set(known)
    assert {pair.kind for pair in made()} == set(MAKERS)
    assert len(made()) >= 500
    assert len(by_hand()) >= 150
    assert sum(known[pair.record] == HELD_OUT for pair in by_hand()) >= 50


def test_what_is_written_by_hand_is_no_wording_or_paraphrase_and_stands_there_once() -> None:
    fair = {bare([words]) for record in records() for words in record.wordings}
    fair |= {bare(paraphrase.messages) for paraphrase in paraphrases()}
    assert not [pair for pair in by_hand() if bare(pair.messages) in fair]
    assert not [
        pair for pair, times in Counter((pair.record, pair.messages) for pair in by_hand()).items() if times > 1
    ]
