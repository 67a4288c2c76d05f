"""The tests of this repository: a package, so that what several of them share can be imported."""
