// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
)

// signInArguments are those of a gateway at which people sign in, with files that exist.
func signInArguments(t *testing.T) []string {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	dir := t.TempDir()
	for name, content := range map[string]string{"keys": "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=\n", "secret": "s\n",
		"ca": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))} {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return []string{"--namespace=n", "--account=a", "--oidc-issuer-url=https://login.example", "--oidc-client-id=parley",
		"--oidc-redirect-url=https://chat.example/ui/callback", "--session-key-file=" + filepath.Join(dir, "keys"),
		"--oidc-client-secret-file=" + filepath.Join(dir, "secret"), "--oidc-ca-file=" + filepath.Join(dir, "ca")}
}

func TestSignInFlagsAreOptional(t *testing.T) {
	c, err := parse([]string{"--namespace=n", "--account=a"})
	check.OK(t, err)
	if people, err := c.signIn.open(nil); people != nil || err != nil {
		t.Errorf("without flags: %v, %v", people, err)
	}
	c, err = parse(signInArguments(t))
	check.OK(t, err)
	if people, err := c.signIn.open(nil); people == nil || err != nil {
		t.Errorf("with all flags: %v, %v", people, err)
	}
}

func TestUnusableSignInFlagsAreRefused(t *testing.T) {
	for name, tt := range map[string]struct{ without, with, says string }{
		"no client":        {"--oidc-client-id", "", "go together"},
		"no keys":          {"--session-key-file", "", "go together"},
		"keys only":        {"--oidc", "", "go together"},
		"streams only":     {"", "--accept-api-server-tokens=false", "--accept-api-server-tokens"},
		"keys elsewhere":   {"", "--session-key-file=/none", "--session-key-file"},
		"no keys in it":    {"", "--session-key-file=/dev/null", "there is no key"},
		"no certificate":   {"", "--oidc-ca-file=/dev/null", "has no certificate"},
		"secret elsewhere": {"", "--oidc-client-secret-file=/none", "--oidc-client-secret-file"},
		"no TLS":           {"", "--oidc-redirect-url=http://chat.example/ui/callback", "https://HOST/ui/callback"},
	} {
		args := append(slices.DeleteFunc(signInArguments(t), func(arg string) bool {
			return tt.without != "" && strings.HasPrefix(arg, tt.without)
		}), strings.Fields(tt.with)...)
		c, err := parse(args)
		if err == nil {
			_, err = c.signIn.open(nil)
		}
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
