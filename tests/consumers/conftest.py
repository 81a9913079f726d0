"""The plugins are for other runs of pytest than this one: to import them here would change SciPy and scikit-learn for all tests."""

collect_ignore_glob = ["*_plugin.py", "estimators.py", "run.py"]
