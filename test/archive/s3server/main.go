// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command s3server is an S3 server for the tests of installations. Its arguments are a folder and an address.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"parley.dev/parley/test/archive/s3"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := s3.Serve(ctx, os.Args[1], os.Args[2])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "s3server:", err)
		os.Exit(1)
	}
}
