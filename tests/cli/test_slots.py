"""`streamtables slots`: list, create, drop, move."""

from __future__ import annotations

from cli.following import Followed, lines


def test_a_slot_is_created_read_moved_and_dropped(t: Followed) -> None:
    assert t.said("slots list") == "There are no slots.\n"
    assert t.said("slots create s shop.t --as-of 1") == "Slot s is created: shop.t@1\n"
    shown = t.said("slots list --wide")
    for each in ("s", "version", "shop.t@1", "ACTIVE"):
        assert each in shown
    [found] = t.json("slots list")
    assert (found["acknowledged"], found["versions_behind"], found["reader"]) == (1, 3, None)
    assert t.rows("--slot", "s", "--ack")[0][0] == 1

    assert t.said("slots move s --as-of 3 --no-snapshot") == "Slot s is moved: shop.t@3\n"
    assert t.rows("--slot", "s", "--ack") == [(4, 2, 3, "c")]
    t.said("slots move s --as-of 4")
    assert t.rows("--slot", "s", "--ack", "--order-by", "k") == [(4, 1, 1, "A"), (4, 2, 3, "c")]
    assert t.said("slots drop s") == "Slot s is dropped.\n"
    assert t.json("slots list") == []


def test_a_deadline_is_chosen(t: Followed) -> None:
    [never] = t.json("slots create a shop.t --deadline 0")
    [soon] = t.json("slots create b shop.t --deadline 2h")
    assert (never["expires_at"], soon["expires_at"] is None) == (None, False)


def test_bad_slots_are_refused(t: Followed) -> None:
    t.said("slots create s shop.t --as-of 1")
    before = t.lake.slots.read("s")
    assert 'slot "s" already exists' in t.refused("slots create s shop.t")
    assert "is not a valid" in t.refused("slots create 'a b' shop.t")
    assert "a slot cannot begin at 99" in t.refused("slots move s --as-of 99")
    assert "a slot cannot begin at 99" in t.refused("slots create r shop.t --as-of 99")
    assert 'there is no slot "x"' in t.refused("slots move x")
    assert 'there is no slot "x"' in t.refused("slots drop x")
    assert "there is no table" in t.refused("slots create r shop.none")
    t.refused("slots create r", code=2)
    assert t.lake.slots.read("s") == before


def test_a_slot_that_is_read_is_moved_by_nobody(t: Followed) -> None:
    with t.started("shop.t", "--slot", "s", "--format", "ndjson") as process:
        lines(process, 2)
        assert 'slot "s" has a reader' in t.refused("slots move s")
        assert 'slot "s" has a reader' in t.refused("slots drop s")
        [found] = t.json("slots list")
        assert found["reader"] is not None
        t.said("slots drop s --force")
    t.refused("slots drop s")
