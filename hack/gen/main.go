// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gen writes the files that follow from the sources of the project: pages of the reference, the description of
// the gateway's operations, and the dashboard. Run it in the root of the repository.
//
//	go run ./hack/gen          writes the files
//	go run ./hack/gen -check   fails if a file is stale, and writes nothing
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"

	"parley.dev/parley/hack/gen/errorpage"
	"parley.dev/parley/hack/gen/reference"
	"parley.dev/parley/hack/gen/status"
	"parley.dev/parley/hack/gen/toolpage"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/internal/telemetry/dashboard"
)

// file is one that is generated.
type file struct {
	path   string
	render func() ([]byte, error)
}

func files() []file {
	all := []file{
		{"config/grafana/parley.json", dashboard.JSON},
		{"docs/reference/alerts.md", reference.Alerts},
		{"docs/reference/chart.md", reference.Chart},
		{"docs/reference/errors.md", errorpage.Render},
		{"docs/reference/events.md", reference.Events},
		{"docs/reference/flags.md", reference.Flags},
		{"docs/reference/gateway-openapi.json", openAPI},
		{"docs/reference/gateway-operations.md", reference.Operations},
		{"docs/reference/kubectl-chat.md", reference.CLI},
		{"docs/reference/metrics.md", reference.Metrics},
		{"docs/reference/security-tests.md", reference.Security},
		{"docs/reference/status.md", status.Render},
		{"docs/reference/stream-events.md", reference.StreamEvents},
		{"docs/reference/tools.md", toolpage.Render},
		{"internal/gateway/page/ui/js/tools.js", toolpage.Script},
	}
	for _, kind := range reference.Kinds() {
		all = append(all, file{"docs/reference/" + kind.Page, kind.Render})
	}
	return all
}

func openAPI() ([]byte, error) {
	_, description := rest.New(rest.Options{})
	return rest.Description(description)
}

func main() {
	check := flag.Bool("check", false, "fail if a file is stale, and write nothing")
	flag.Parse()
	if err := run(files(), *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(all []file, check bool) (err error) {
	for _, f := range all {
		if wrong := f.run(check); wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", f.path, wrong))
		}
	}
	return err
}

func (f file) run(check bool) error {
	want, err := f.render()
	if err != nil {
		return fmt.Errorf("rendering: %w", err)
	}
	if !check {
		return os.WriteFile(f.path, want, 0o644)
	}
	have, err := os.ReadFile(f.path)
	if err == nil && !bytes.Equal(have, want) {
		err = errors.New("stale: run make generate")
	}
	return err
}
