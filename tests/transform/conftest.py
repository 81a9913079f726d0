"""How many functions of JAX are tried on how many structures: a part by default, everything with ``--functions full``."""


def pytest_addoption(parser):
    parser.addoption(
        "--functions",
        default="part",
        metavar="part|each|full",
        help="run a third of the functions of JAX on one structure, in one way, each (the default), all of them so, or every "
        "function on every structure in every way",
    )
