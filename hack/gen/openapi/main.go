// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gen writes docs/reference/gateway-openapi.json: what the gateway does for its callers, in OpenAPI.
//
//	go run ./hack/gen/openapi -o docs/reference/gateway-openapi.json
package main

import (
	"flag"
	"fmt"
	"os"

	"parley.dev/parley/internal/gateway/rest"
)

func main() {
	out := flag.String("o", "docs/reference/gateway-openapi.json", "the file to write")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string) error {
	_, openAPI := rest.New(rest.Options{})
	text, err := rest.Description(openAPI)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("writing the description: %w", err)
	}
	return nil
}
