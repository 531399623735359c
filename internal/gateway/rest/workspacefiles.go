// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/netguard/slowclient"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	getWorkspaceFiles = "getWorkspaceFiles"
	putWorkspaceFile  = "putWorkspaceFile"

	// copyTimeout bounds how long a copy from a workspace may take.
	copyTimeout = 15 * time.Minute
)

// AtPath is the file or directory of a workspace that a request is about.
type AtPath struct {
	OfChat

	Path string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"Relative to the directory of the workspace, which is \".\"."`
}

// NewFile is a file for a workspace.
type NewFile struct {
	AtPath

	Executable bool `query:"executable" doc:"Makes the file executable if it is new."`

	body io.Reader
	size int64 // -1: unknown
}

// Resolve implements huma.Resolver.
func (f *NewFile) Resolve(ctx huma.Context) []error {
	r, w := humago.Unwrap(ctx)
	f.body, f.size = body{slowclient.NewReader(r.Body, w, uploadPiece, bodyTimeout)}, r.ContentLength
	ctx.SetHeader("Connection", "close") // Otherwise a refusal would wait for the body.
	return nil
}

// workspaceFiles are the operations that copy files from workspaces and to them.
type workspaceFiles struct{ workspaces }

func (w workspaceFiles) register() {
	const path = "/namespaces/{namespace}/chats/{chat}/workspace"
	get := operation(getWorkspaceFiles, http.MethodGet, path, "Copy a file or directory from the workspace of a chat",
		"As a tar archive. Its names are relative to the directory, which is ./ there; a file has its own name. An entry "+
			"with the PAX record "+protocol.ArchiveError+" could not be read. An answer that breaks off is not complete. "+
			"For those who may get workspaces/files.", http.StatusOK)
	get.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		"application/x-tar": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}}
	register(w.api, get, w.get)
	put := operation(putWorkspaceFile, http.MethodPut, path, "Copy a file to the workspace of a chat",
		"Replaces the file, and creates missing directories. Needs a Content-Length, of at most 16 MiB. For those who may "+
			"update workspaces/files.",
		http.StatusNoContent)
	put.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{ // A file may be empty.
		"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
	register(w.api, put, w.put)
}

func (w workspaceFiles) get(ctx context.Context, in *AtPath) (out *huma.StreamResponse, err error) {
	copying, stop := context.WithTimeout(ctx, copyTimeout)
	err = w.ask(ctx, &in.OfChat, "get", "files", func(agent *client.Client) error {
		archive, err := client.OpenArchive(copying, agent, in.Path)
		if err != nil {
			return aboutPath(err)
		}
		out = &huma.StreamResponse{Body: func(to huma.Context) {
			defer stop()
			defer func() { _ = archive.Close() }() // It was only read.
			w.send(copying, to, archive)
		}}
		return nil
	})
	if err != nil {
		stop()
	}
	return out, err
}

// send streams an archive as a download, so that browsers never show it as a page of the gateway.
func (w workspaceFiles) send(ctx context.Context, to huma.Context, archive io.Reader) {
	for name, value := range map[string]string{"Content-Type": "application/x-tar", "Content-Disposition": "attachment",
		"X-Content-Type-Options": "nosniff"} {
		to.SetHeader(name, value)
	}
	_, writer := humago.Unwrap(to)
	out := slowclient.New(writer, writeTimeout)
	out.IgnoreReads()
	defer out.Close()
	if _, err := io.Copy(out, archive); err != nil {
		w.api.options.Refused(ctx, &refusal.Error{Status: http.StatusServiceUnavailable,
			Reason: refusal.WorkspaceUnavailable, Cause: err, Message: "copying from a workspace broke off"})
		panic(http.ErrAbortHandler) // The client sees that the answer is not complete.
	}
}

func (w workspaceFiles) put(ctx context.Context, in *NewFile) (*struct{}, error) {
	return nil, w.ask(ctx, &in.OfChat, "update", "files", func(agent *client.Client) error {
		switch {
		case in.size < 0:
			return badRequest("the size of the file is not known: send the header Content-Length")
		case in.size > protocol.MaxFileBytes:
			return refused{&refusal.Error{Status: http.StatusRequestEntityTooLarge, Reason: refusal.TooLarge,
				Message: "the file is too large: a workspace takes files of at most 16 MiB"}}
		}
		content := make([]byte, in.size)
		if _, err := io.ReadFull(in.body, content); err != nil {
			return badRequest("the file did not arrive: %v", err)
		}
		_, err := client.PutFile(ctx, agent, in.Path, content, in.Executable)
		return aboutPath(err)
	})
}

// aboutPath converts refusals of an agent that are about one path: others can be copied.
func aboutPath(err error) error {
	answer, ok := errors.AsType[*protocol.Error](err)
	if !ok {
		return err
	}
	switch answer.Code {
	case protocol.OutsideWorkspace:
		return badRequest("the path leads out of the directory of the workspace")
	case protocol.BadRequest, protocol.NotRegular, protocol.PermissionDenied, protocol.TooLarge:
		return badRequest("%s", answer.Message)
	}
	return err
}
