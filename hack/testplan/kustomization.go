// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// kustomizations finds the files and folders that each kustomization below root names.
func kustomizations(root string) (map[string][]string, error) {
	files, err := filepath.Glob(filepath.Join(root, "config/*/kustomization.yaml"))
	if err != nil {
		return nil, fmt.Errorf("looking for kustomizations: %w", err)
	}
	deeper, err := filepath.Glob(filepath.Join(root, "config/*/*/kustomization.yaml"))
	if err != nil {
		return nil, fmt.Errorf("looking for kustomizations: %w", err)
	}
	names := map[string][]string{}
	for _, file := range append(files, deeper...) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a kustomization: %w", err)
		}
		file, err = filepath.Rel(root, file)
		if err != nil {
			return nil, fmt.Errorf("finding a kustomization: %w", err)
		}
		names[file] = namedIn(root, path.Dir(file), string(text))
	}
	return names, nil
}

// namedIn are the words of a text that are paths relative to dir.
func namedIn(root, dir, text string) (names []string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n[],\"", r) }) {
		names = append(names, existing(root, dir, path.Join(dir, word))...)
	}
	return names
}
