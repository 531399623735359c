// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command scripted-model serves a scripted model: see package modelserver for the script and the protocols.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"parley.dev/parley/test/modelserver"
)

func main() {
	listen := flag.String("listen", ":8080", "where to listen")
	script := flag.String("script", "", "file with the script, YAML or JSON; default: echo")
	flag.Parse()
	if err := run(*listen, *script); err != nil {
		fmt.Fprintln(os.Stderr, "scripted-model:", err)
		os.Exit(1)
	}
}

func run(listen, file string) error {
	var script modelserver.Script
	if file != "" {
		raw, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading the script: %w", err)
		}
		if script, err = modelserver.Parse(raw); err != nil {
			return fmt.Errorf("script %s: %w", file, err)
		}
	}
	handler, err := modelserver.New(script)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	server := &http.Server{Addr: listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("listening at %s: %w", listen, err)
	}
	return nil
}
