// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gen writes the dashboard for Grafana.
//
//	go run ./hack/gen/dashboard          writes config/grafana/parley.json
//	go run ./hack/gen/dashboard -check   fails when it is not what would be written
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"parley.dev/parley/internal/telemetry/dashboard"
)

func main() {
	out := flag.String("o", "config/grafana/parley.json", "the file to write or to check")
	check := flag.Bool("check", false, "fail when the file differs, and write nothing")
	flag.Parse()
	if err := run(*out, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string, check bool) error {
	text, err := dashboard.JSON()
	if err != nil {
		return err
	}
	if !check {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("writing the dashboard: %w", err)
		}
		return nil
	}
	have, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the dashboard: %w", err)
	}
	if !bytes.Equal(have, text) {
		return fmt.Errorf("%s differs from what its package makes: run go run ./hack/gen/dashboard -o %s", path,
			path)
	}
	return nil
}
