// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package main

// raceEnabled reports whether the race detector takes memory of its own.
const raceEnabled = true
