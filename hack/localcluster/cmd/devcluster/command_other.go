// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"context"
	"errors"
)

func command(_ context.Context, _, _, _ string, _ int, _ string, _ []string) error {
	return errors.New("a local cluster needs Linux. Use a cluster you have instead:\n" +
		"  KUBECONFIG=... USE_CURRENT_CONTEXT=1 make demo")
}
