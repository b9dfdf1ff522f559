"""The tests: a folder for each package of bpls_fast, and support/ for what they share."""

from bench import ROOT as ROOT
