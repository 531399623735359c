// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shard says which namespaces a manager works for when several share them out among themselves.
package shard

import (
	"fmt"
	"hash/fnv"

	"github.com/dgryski/go-jump"
)

// Shard is one of several parts of a cluster's namespaces. The zero value is all of them.
type Shard struct {
	// Index of the shard, from 0.
	Index int
	// Total is how many shards there are. Up to 1: all namespaces are in the one that there is.
	Total int
}

// Validate says what is wrong with the shard; nil: nothing.
func (s Shard) Validate() error {
	switch {
	case s.Total < 0 || s.Index > 0 && s.Total == 0:
		return fmt.Errorf("there are %d shards: there must be 1 or more", s.Total)
	case s.Index < 0 || s.Index >= max(1, s.Total):
		return fmt.Errorf("shard %d of %d: it must be from 0 to %d", s.Index, s.Total, max(1, s.Total)-1)
	}
	return nil
}

// IsAll reports whether there is no other shard.
func (s Shard) IsAll() bool { return s.Total <= 1 }

// Owns reports whether a namespace is in the shard. Objects without a namespace, for which it is empty, are in shard 0.
// Which shard a namespace is in follows from its name and from how many shards there are, and from nothing else. One
// shard more takes namespaces from all others, and moves none between these.
func (s Shard) Owns(namespace string) bool {
	if s.IsAll() || namespace == "" {
		return s.Index == 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(namespace)) // It never fails.
	return int(jump.Hash(h.Sum64(), s.Total)) == s.Index
}

// Lease names the Lease that the managers of a shard elect their leader by. That of shard 0 does not change with the
// number of shards, so that it takes over from a manager of all namespaces.
func (s Shard) Lease() string {
	if s.Index == 0 {
		return "manager.parley.dev"
	}
	return fmt.Sprintf("manager-%d.parley.dev", s.Index)
}
