"""Programs that try to get out, or to be rewarded without work: one file per attack.

Each opens with a header that the tests read:

    # tries: what it attempts, to the end of the sentence
    # path: call | stdin | code | checker | either | either_code | many, the tests that it is run on
    # observed: the verdicts of which one must come of it
    # waits: yes, of an attack that ends only by the wall limit; it alone has a short one

A program that attempts to break out answers right only if it succeeded, so whatever an attack
tries, it is contained exactly if it is not rewarded. The task is to sort; with `either`, to answer
eight questions of which nothing is known, for two problems whose right answers are opposite: only a
program that may answer a question twice gets one right in both; with `many`, to answer 120 tests.
@OWNER@, @PORT@, @SECRET@, @FOLDER@, @TESTS@ and @ENGINE@ stand for things of the machine that it
attacks.
"""
