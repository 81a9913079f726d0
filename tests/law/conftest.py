"""How many of the equivalence tests run: a part by default, everything with ``--law full``."""


def pytest_addoption(parser):
    parser.addoption(
        "--law",
        default="part",
        metavar="part|pairs|full|N",
        help="check the law for a part of a selection that covers all pairs of function and structure (the default), for "
        "that selection, for everything, or for N combinations of each case",
    )
    parser.addoption(
        "--expressions",
        type=int,
        metavar="N",
        help="check N random expressions: by default 300, of a part of the parameters 100",
    )
