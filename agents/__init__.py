"""Who answers: the vote, the standard and the deep engine."""
