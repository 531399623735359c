// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/workspace/client"
)

// endpoint is a server that can be called: at its url, or by the agent that runs its command.
type endpoint struct {
	server  *v1beta1.MCPServer
	url     *url.URL
	agent   *client.Client
	headers http.Header
	secrets scrubber
	// roots are the authorities of its certificate; nil: those of the image.
	roots *x509.CertPool
	// key is a hash of all that the answers of the server depend on. Endpoints of other keys share no answers.
	key string
}

// endpoint returns the endpoint of an entry, with its headers and secrets.
func (s *Servers) endpoint(ctx context.Context, server *v1beta1.MCPServer, places Places) (*endpoint, *failure) {
	ctx, cancel := context.WithTimeout(ctx, server.ConnectTimeout())
	defer cancel()
	if len(server.Command) > 0 {
		return inWorkspace(ctx, server, places)
	}
	target, failed := s.target(server)
	if failed != nil {
		return nil, failed
	}
	e := &endpoint{server: server, url: target, headers: http.Header{}}
	for _, header := range server.Headers {
		e.headers.Set(header.Name, header.Value)
	}
	if failed = s.addSecrets(e); failed != nil {
		return nil, failed
	}
	bundle, failed := s.addRoots(ctx, e)
	if failed != nil {
		return nil, failed
	}
	e.setKey(e.headers, bundle)
	return e, nil
}

// inWorkspace is the endpoint of a command. A server in another pod is another one.
func inWorkspace(ctx context.Context, server *v1beta1.MCPServer, places Places) (*endpoint, *failure) {
	if places.Workspace == nil {
		return nil, fail(v1beta1.MCPWorkspaceNotReady, "its command needs a workspace: there is none")
	}
	agent, err := places.Workspace(ctx)
	if err != nil {
		return nil, fail(v1beta1.MCPWorkspaceNotReady, "its command needs the workspace: %s",
			scrubLine(err.Error(), scrubber{}))
	}
	e := &endpoint{server: server, agent: agent}
	chat, pod := agent.Place()
	e.setKey(chat, pod)
	return e, nil
}

// setKey sets the key, from the entry and all else that the answers of the server depend on.
func (e *endpoint) setKey(more ...any) {
	raw, _ := json.Marshal([]any{e.server, more}) // Texts always encode.
	e.key = fmt.Sprintf("%x", sha256.Sum256(raw))
}

// host is the host of its url; empty if it has none.
func (e *endpoint) host() string {
	if e.url == nil {
		return ""
	}
	return e.url.Host
}

// addRoots adds the authorities that the entry names, as they are now, and returns their certificates in PEM.
func (s *Servers) addRoots(ctx context.Context, e *endpoint) (bundle []byte, failed *failure) {
	if e.server.CABundleFrom == nil {
		return nil, nil
	}
	ref, problem := e.server.CABundleFrom.ConfigMapKeyRef, ""
	bundle, err := s.options.ConfigMap(ctx, ref.Name, ref.Key)
	e.roots = x509.NewCertPool()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		problem = "does not exist"
	case err != nil:
		problem = "cannot be read"
	case !e.roots.AppendCertsFromPEM(bundle):
		problem = "holds no certificates in PEM"
	default:
		return bundle, nil
	}
	return nil, fail(v1beta1.MCPCABundleInvalid, "key %s of ConfigMap %s %s", ref.Key, ref.Name, problem)
}

// target is the url of the server, if it may be called.
func (s *Servers) target(server *v1beta1.MCPServer) (*url.URL, *failure) {
	target, err := url.Parse(server.URL)
	if err != nil || target.Host == "" || target.User != nil {
		return nil, fail(v1beta1.MCPConnectionFailed, "its url is not valid")
	}
	if len(s.options.Hosts) > 0 && !s.options.Hosts.Names(target) {
		host := "its host"
		if httpguard.Showable(target.Host) {
			host = "host " + target.Host
		}
		return nil, fail(v1beta1.MCPHostForbidden, "%s is none that MCP servers may be called at", host)
	}
	return target, nil
}

// headerValue are values that can stand in a header: visible ASCII, and spaces between.
var headerValue = regexp.MustCompile(`^[!-~]([ -~]*[!-~])?$`)

// addSecrets adds the headers whose values are in Secrets, as they are now. A failure has none of the values.
func (s *Servers) addSecrets(e *endpoint) *failure {
	var values []string
	for _, header := range e.server.HeadersFrom {
		ref := header.SecretKeyRef
		raw, err := s.options.Secrets(ref.Name, ref.Key)
		value := strings.TrimSpace(string(raw))
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return fail(v1beta1.MCPSecretMissing, "key %s of Secret %s cannot be read in the generation pod", ref.Key,
				ref.Name)
		case err != nil || value == "":
			return fail(v1beta1.MCPSecretMissing, "Secret %s does not exist in namespace %s, or has no key %s, or that is "+
				"empty", ref.Name, s.options.Namespace, ref.Key)
		case !headerValue.MatchString(value):
			return fail(v1beta1.MCPSecretMissing, "key %s of Secret %s has characters that no header can have", ref.Key,
				ref.Name)
		}
		e.headers.Set(header.Name, header.Prefix+value)
		values = append(values, header.Prefix+value, value)
	}
	e.secrets = newScrubber(values)
	return nil
}

// resolve returns the entry with the address that it refers to. The address of another reference than the entry has by
// now does not count: it would get the entry's headers.
func resolve(entry *v1beta1.MCPServer, known []v1beta1.MCPServerAddress) (*v1beta1.MCPServer, *failure) {
	if entry.ServerRef == nil {
		return entry, nil
	}
	i := slices.IndexFunc(known, func(a v1beta1.MCPServerAddress) bool {
		return a.Name == entry.Name && equality.Semantic.DeepEqual(a.Ref, *entry.ServerRef)
	})
	switch {
	case i < 0:
		return entry, fail(v1beta1.MCPNotReady, "its address is looked up before the next step")
	case known[i].URL == "":
		return entry, &failure{reason: known[i].Reason, words: known[i].Message}
	}
	resolved := entry.DeepCopy()
	resolved.URL = known[i].URL
	if resolved.Transport == "" {
		resolved.Transport = known[i].Transport
	}
	return resolved, nil
}
