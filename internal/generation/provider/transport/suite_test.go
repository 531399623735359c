// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package transport_test

import "parley.dev/parley/internal/testing/providertest"

// The protocols of the tests, and what their calls carry.
type protocol = providertest.Protocol

var (
	chat       = providertest.Chat
	responses  = providertest.Responses
	compatible = providertest.Compatible
	claude     = providertest.Claude
	gemini     = providertest.Gemini
)

const (
	key    = providertest.Key
	secret = providertest.Secret
)
