"""Harnesses installed on a node, once for all rollouts (`sluice harness`, docs/harnesses.md): what is fetched from npm or PyPI is
recorded with its digests, and nothing half done is left."""
