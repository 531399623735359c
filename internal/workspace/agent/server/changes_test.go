// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"archive/tar"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4/jwt"

	"parley.dev/parley/api/changes"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

// asGateway sends a request as a gateway does.
func (a *agent) asGateway(r *http.Request) {
	r.Header.Set("Authorization", "Bearer "+a.sign(func(c *jwt.Claims) { c.Subject = gateway }))
}

func TestGatewayMayOnlySeeChangesAndCopyFiles(t *testing.T) {
	a := newAgent(t)
	a.each(http.StatusForbidden, protocol.Forbidden, a.asGateway)
	for _, path := range []string{"/v1/changes", "/v1/patch", "/v1/tree?path=."} {
		a.expect(a.get(path), http.StatusForbidden, protocol.Forbidden)
		a.expect(a.get(path, a.asGateway), http.StatusOK, "")
		a.expect(a.get(path, a.asGateway, func(r *http.Request) { r.Header.Set(protocol.HeaderChat, otherChat) }),
			http.StatusConflict, protocol.BoundToAnother)
		a.expect(a.get(path, a.asGateway, func(r *http.Request) { r.Header.Del("Authorization") }),
			http.StatusUnauthorized, protocol.Unauthenticated)
	}
	a.expect(a.do(http.MethodPut, "/v1/tree?path=a", strings.NewReader("x")), http.StatusForbidden, protocol.Forbidden)
	unbound := unboundAgent(t)
	unbound.expect(unbound.get("/v1/changes", unbound.asGateway), http.StatusConflict, protocol.Unbound)
}

func TestChangesAreSentAsJSONAndAsPatch(t *testing.T) {
	a := newAgent(t)
	check.OK(t, os.WriteFile(filepath.Join(a.dir, "a.txt"), []byte("<gr\xfcn>\n"), 0o600))
	got := decodeReply[changes.Changes](t, a.get("/v1/changes", a.asGateway))
	if len(got.Files) != 1 || !strings.Contains(got.Files[0].Diff, "+<gr\ufffdn>\n") || len(got.Notes) != 1 {
		t.Errorf("got %+v", got)
	}
	patch := a.get("/v1/patch", a.asGateway)
	a.expect(patch, http.StatusOK, "")
	if patch.header.Get("Content-Type") != "text/x-diff" || !strings.HasSuffix(patch.body, "+<gr\xfcn>\n") {
		t.Errorf("got %+v", patch)
	}
	a.expect(a.get("/v1/patch?repository=app", a.asGateway), http.StatusNotFound, protocol.NotFound)
}

func TestFilesAreCopiedBothWays(t *testing.T) {
	a := newAgent(t)
	put := func(query, content string) reply {
		return a.do(http.MethodPut, "/v1/tree?"+query, strings.NewReader(content), a.asGateway)
	}
	a.expect(put("path=bin/run&executable=true", "#!/bin/sh\n"), http.StatusCreated, "")
	a.expect(put("path=bin/run", "exit\n"), http.StatusOK, "") // It stays executable.
	a.expect(put("path=bin", "x"), http.StatusUnprocessableEntity, protocol.NotRegular)
	got := a.get("/v1/tree?path=bin/run", a.asGateway)
	a.expect(got, http.StatusOK, "")
	archive := tar.NewReader(strings.NewReader(got.body))
	header, err := archive.Next()
	check.OK(t, err)
	content, err := io.ReadAll(archive)
	check.OK(t, err)
	if header.Name != "run" || header.Mode&0o111 == 0 || string(content) != "exit\n" {
		t.Errorf("got %+v %q", header, content)
	}
	a.expect(a.get("/v1/tree?path=none", a.asGateway), http.StatusNotFound, protocol.NotFound)
}

func TestOneReviewRunsAtATime(t *testing.T) {
	a := unboundAgent(t)
	running, end := make(chan struct{}), make(chan struct{})
	a.run = func(context.Context, *protocol.StartRequest, string, func(io.Reader) error) error {
		close(running)
		<-end
		return &protocol.Error{Code: protocol.CannotStart, Message: "there is no git"}
	}
	a.restart()
	a.expect(a.put("/v1/binding", protocol.Binding{Chat: chat}), http.StatusOK, "")
	first := make(chan reply, 1)
	go func() { first <- a.get("/v1/changes", a.asGateway) }()
	<-running
	a.expect(a.get("/v1/patch", a.asGateway), http.StatusServiceUnavailable, protocol.Unavailable)
	close(end)
	a.expect(<-first, http.StatusOK, "")
}
