// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/clip"
	"parley.dev/parley/internal/generation/provider/transport"
)

// endpoint is a server as it is called.
type endpoint struct {
	server  *v1alpha1.MCPServer
	url     *url.URL
	headers http.Header
	secrets scrubber
	// key is that of everything that decides what the server says: what is kept of one key is never met by another.
	key string
}

// endpoint is where the server is called, and with what.
func (s *Servers) endpoint(server *v1alpha1.MCPServer) (*endpoint, *failure) {
	target, err := url.Parse(server.URL)
	if err != nil || target.Host == "" || target.User != nil {
		return nil, &failure{reason: v1alpha1.MCPConnectionFailed, words: "its url is not valid"}
	}
	if len(s.options.Hosts) > 0 && !s.options.Hosts.Names(target) {
		host := "its host"
		if transport.Showable(target.Host) {
			host = "host " + target.Host
		}
		return nil, &failure{reason: v1alpha1.MCPHostForbidden, words: host + " is none that MCP servers may be called at"}
	}
	e := &endpoint{server: server, url: target, headers: http.Header{}}
	for _, header := range server.Headers {
		e.headers.Set(header.Name, header.Value)
	}
	if failed := s.addSecrets(e); failed != nil {
		return nil, failed
	}
	raw, err := json.Marshal([]any{server, e.headers})
	if err != nil {
		return nil, &failure{reason: v1alpha1.MCPConnectionFailed, words: "its entry cannot be read"}
	}
	sum := sha256.Sum256(raw)
	e.key = hex.EncodeToString(sum[:])
	return e, nil
}

// inHeader are values that can stand in a header: visible ASCII, and spaces between.
var inHeader = regexp.MustCompile(`^[!-~]([ -~]*[!-~])?$`)

// addSecrets adds the headers whose values are in Secrets, as they are now. None of the values is told in a failure.
func (s *Servers) addSecrets(e *endpoint) *failure {
	var values []string
	for _, header := range e.server.HeadersFrom {
		ref := header.SecretKeyRef
		raw, err := s.options.Secrets(ref.Name, ref.Key)
		value, problem := strings.TrimSpace(string(raw)), ""
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			problem = "cannot be read in the generation pod"
		case err != nil || value == "":
			problem = "does not exist, or is empty"
		case !inHeader.MatchString(value):
			problem = "has characters that no header can have"
		}
		if problem != "" {
			return &failure{reason: v1alpha1.MCPSecretMissing,
				words: clip.Ellipsis(fmt.Sprintf("key %s of Secret %s %s", ref.Key, ref.Name, problem), maxWords)}
		}
		e.headers.Set(header.Name, header.Prefix+value)
		values = append(values, header.Prefix+value, value)
	}
	e.secrets = newScrubber(values)
	return nil
}
