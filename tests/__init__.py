"""The tests: a folder for each package of bpls_fast, and support/ for what they share."""

from harness import ROOT as ROOT
