// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-chat is a kubectl plug-in: put it into PATH and say kubectl chat.
package main

import (
	"context"
	"os"
	"os/signal"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"parley.dev/parley/internal/kubectlchat"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := kubectlchat.Run(ctx, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, os.Args[1:])
	stop()
	os.Exit(code)
}
