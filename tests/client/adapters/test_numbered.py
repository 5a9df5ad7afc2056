"""Versions of a policy as numbers, for trainers that count them."""
import unittest

import python_path  # noqa: F401  (before what it finds)

from sluice.adapters.parts.numbered import number_of, span_of


class Numbers(unittest.TestCase):
    def test_a_version_is_the_number_that_it_ends_with_and_of_several_the_least(self):
        self.assertEqual([number_of(version) for version in ("7", "step-12", "v3.10", "step-8+step-7")], [7, 12, 10, 7])

    def test_a_version_without_a_number_or_one_of_several_is_none(self):
        self.assertEqual([number_of(version) for version in ("", "best", "step-7+best", "7b")], [None] * 4)

    def test_the_digits_that_a_digest_ends_with_are_no_number(self):
        digests = ("3f9c2a77", "main-3f9c2a77", "beef77", "step-7+beef77", "1e5", "7" * 19, "step-\u0667")
        self.assertEqual([number_of(version) for version in digests], [None] * len(digests))
        self.assertEqual([number_of(version) for version in ("v7", "step7", "run:iter_12", "a.b/77")], [7, 7, 12, 77])

    def test_a_span_is_of_all_parts_of_all_versions_and_none_where_one_has_no_number(self):
        self.assertEqual(span_of(["step-9", "step-8+step-11"]), (8, 11))
        self.assertEqual([span_of(versions) for versions in ([], ["step-9", ""], ["step-9+best"])], [None] * 3)


if __name__ == "__main__":
    unittest.main()
