"""What the numbers of a record say against each other."""

from beliefscope.warning_signs import doubts, stored_warnings

FOUND = {
    "bits": 3.0,
    "standard_error": 0.05,
    "estimator": "MINE, 200 epochs, fresh pairs",
    "ceiling": 13.3,
    "curve": [3.0] * 100,
    "entropy": {"bits": 4.0, "distinct": 16, "flagged": False},
}


def test_the_numbers_of_a_record_are_held_against_each_other():
    assert doubts(FOUND) == ()
    assert "above H(b) = 4.00" in doubts(FOUND | {"bits": 4.5})[0]
    assert "above H(b) = 4.00" in doubts(FOUND | {"bits": 5})[0]  # JSON has one kind of number
    assert doubts(FOUND | {"bits": 4.5, "entropy": FOUND["entropy"] | {"flagged": True}}) == ()
    assert doubts(FOUND, proven=3.5) == ("below a decoder's bound: at least 3.50 bits are there",)
    decoded = {"linear": {"baseline_cross_entropy": 5.0, "cross_entropy": 1.0}}
    assert doubts(FOUND | {"decoded": decoded}) == ("below a decoder's bound: at least 4.00 bits are there",)
    decoded = {"linear": {"baseline_cross_entropy": 5.2, "cross_entropy": 1.0}}  # no more than there is
    assert doubts(FOUND | {"decoded": decoded}) == ("below a decoder's bound: at least 4.00 bits are there",)
    both = {"controls": {"memory and time": {"bits": 4.6, "standard_error": 0.1}}, "given time": -0.5}
    exceeds, negative = doubts(FOUND | both)
    assert "exceeds H(b) = 4.00" in exceeds
    assert "I(h; b | t) = -0.50 bits is negative" in negative


def test_records_from_before_there_were_warnings_get_theirs_when_read():
    failed = FOUND | {"bits": -4.0}
    assert any(each.startswith("failed fit") for each in stored_warnings(failed, None))
    assert stored_warnings(FOUND | {"warnings": ["failed fit: told"]}, None) == ("failed fit: told",)
    assert stored_warnings(FOUND | {"warnings": []}, 3.5) == ("below a decoder's bound: at least 3.50 bits are there",)
