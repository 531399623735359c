// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"parley.dev/parley/test/model/reference"
)

// knownDifference is a kind of operation of which it is known that the operator does something else than the model says.
type knownDifference struct {
	// difference says what the operator does instead.
	difference string
	is         func(c *reference.Chat, o operation) bool
	// remedy is what is done about it.
	remedy remedy
}

// remedy is how a known difference is kept out of a sequence.
type remedy int

const (
	// leaveOut leaves the operation out.
	leaveOut remedy = iota
	// settleBefore and settleAfter carry it out, and wait until every message says where it stands: then the operator is right.
	settleBefore
	settleAfter
)

// known is empty when the operator is right: a line goes as soon as it is. With -known all of them are carried out, too.
var known []knownDifference

// isKnown tells whether there is a known difference with that remedy.
func isKnown(c *reference.Chat, o operation, r remedy) bool {
	return !*knownFlag && slices.ContainsFunc(known, func(k knownDifference) bool { return k.remedy == r && k.is(c, o) })
}
