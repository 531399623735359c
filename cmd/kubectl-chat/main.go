// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-chat is a kubectl plug-in: put it into PATH and say kubectl chat.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2" //nolint:depguard // It is silenced here.

	"parley.dev/parley/internal/cli/verbs"
)

func main() {
	// What libraries log would stand amid a conversation, unescaped. Verbs tell of their errors themselves.
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the program at once.
	code := verbs.Run(ctx, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		verbs.Arguments(os.Args))
	stop()
	os.Exit(code)
}
