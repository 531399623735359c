// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Kubeconfig renders a self-contained kubeconfig (JSON, which is YAML too) for a user whose certificate is in dir.
// server is the API server's URL as that user reaches it.
func Kubeconfig(dir, user, server string) ([]byte, error) {
	files := map[string][]byte{}
	for _, name := range []string{"ca.crt", user + ".crt", user + ".key"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("making a kubeconfig for %s: %w", user, err)
		}
		files[name] = b
	}
	type object = map[string]any
	const context = "parley"
	// []byte values become base64, which is what the *-data fields hold.
	b, err := json.MarshalIndent(object{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": context,
		"contexts":        []object{{"name": context, "context": object{"cluster": context, "user": user}}},
		"clusters": []object{{"name": context, "cluster": object{
			"server": server, "certificate-authority-data": files["ca.crt"],
		}}},
		"users": []object{{"name": user, "user": object{
			"client-certificate-data": files[user+".crt"], "client-key-data": files[user+".key"],
		}}},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("making a kubeconfig for %s: %w", user, err)
	}
	return append(b, '\n'), nil
}
