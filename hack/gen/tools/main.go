// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gen writes docs/reference/tools.md from the built-in tools, so that the page cannot say anything else than
// what models are told, and what their calls are checked by.
//
//	go run ./hack/gen/tools -o docs/reference/tools.md          writes the page
//	go run ./hack/gen/tools -o docs/reference/tools.md -check   fails when the page is not what would be written
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
)

func main() {
	out := flag.String("o", "docs/reference/tools.md", "the file to write or to check")
	check := flag.Bool("check", false, "fail when the file differs, and write nothing")
	flag.Parse()
	if err := run(*out, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string, check bool) error {
	page, err := render(builtIn())
	if err != nil {
		return err
	}
	if !check {
		if err := os.WriteFile(path, page, 0o644); err != nil {
			return fmt.Errorf("writing the page: %w", err)
		}
		return nil
	}
	have, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the page: %w", err)
	}
	if !bytes.Equal(have, page) {
		return fmt.Errorf("%s does not say what the tools do: run go run ./hack/gen/tools -o %s", path, path)
	}
	return nil
}
