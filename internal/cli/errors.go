// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

// NotFoundError means that there is no object of that name.
type NotFoundError string

func (e NotFoundError) Error() string { return string(e) }

// NotReadyError is why an object is not Ready for good: the reason and message of its condition.
type NotReadyError struct{ Reason, Message string }

func (e NotReadyError) Error() string { return e.Reason + ": " + e.Message }
