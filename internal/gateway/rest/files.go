// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"k8s.io/apimachinery/pkg/api/resource"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/slowclient"
	"parley.dev/parley/internal/pods/capacity"
)

const (
	// uploadTimeout bounds how long an upload may take.
	uploadTimeout = 15 * time.Minute
	// uploadPiece is how much of an upload has to arrive within bodyTimeout: 52 KiB a second.
	uploadPiece = 1 << 20

	putFile = "putFile"
	// getFile is the one operation that takes tokens which are good for listening alone: generation pods have those.
	getFile = "getFile"
)

// Files are what the operations on files need in addition to Options.Archive. All are required.
type Files struct {
	// Reader authenticates a caller, also with a token that is good for listening alone, who may get the ChatMessages of
	// the namespace.
	Reader func(ctx context.Context, token, namespace string) (caller string, refused *refusal.Error)
	// UID returns the UID of a chat; empty: there is no such chat.
	UID func(ctx context.Context, namespace, chat string) string
	// Quotas lists the ChatQuotas of a namespace.
	Quotas func(ctx context.Context, namespace string) ([]v1beta1.ChatQuota, error)
	// Limit is how many bytes the files of a namespace may have where no ChatQuota sets it.
	Limit int64
}

// OfFile is the file that a request is about.
type OfFile struct {
	OfChat

	SHA256 string `path:"sha256" pattern:"^[0-9a-f]{64}$" doc:"The SHA-256 of the content, in hexadecimal digits."`
}

// Upload is a file with its content, which is not read yet.
type Upload struct {
	OfFile

	body io.Reader
	size int64 // -1: unknown
}

// Resolve implements huma.Resolver.
func (u *Upload) Resolve(ctx huma.Context) []error {
	r, w := humago.Unwrap(ctx)
	u.body, u.size = body{slowclient.NewReader(r.Body, w, uploadPiece, bodyTimeout)}, r.ContentLength
	ctx.SetHeader("Connection", "close") // Otherwise a refusal would wait for the body.
	return nil
}

// body is that of a request. Its errors are not those of the store.
type body struct{ io.Reader }

// Read implements io.Reader.
func (b body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = bodyError{err}
	}
	return n, err
}

type bodyError struct{ error }

// files are the operations on the files of chats.
type files struct {
	Files

	api   *api
	store *archive.Store // nil: there is none.
}

func (f files) register() {
	const path = "/namespaces/{namespace}/chats/{chat}/files/{sha256}"
	put := operation(putFile, http.MethodPut, path, "Upload a file for messages of a chat",
		"A ChatMessage names it as a part of the type File with stored: {sha256, size}. It is deleted with the chat, and 24 "+
			"hours after the upload if no message names it. Needs a Content-Length, of at most 3.5 MiB. For those who may "+
			"create chatmessages.", http.StatusNoContent)
	put.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
	register(f.api, put, f.putFile)
	register(f.api, operation(getFile, http.MethodGet, path, "Read an uploaded file",
		"An answer that breaks off is not as it was uploaded. For those who may get chatmessages, also with a token of the "+
			"audience parley-gateway.", http.StatusOK), f.getFile)
}

// key is the UID of the chat, under which its files are stored.
func (f files) key(ctx context.Context, in *OfFile) (uid string, err error) {
	if f.store == nil {
		return "", notFound("this gateway stores no files: its administrator can start it with --archive-url")
	}
	if uid = f.UID(ctx, in.Namespace, in.Chat); uid == "" {
		return "", notFound("there is no chat %s in namespace %s", in.Chat, in.Namespace)
	}
	return uid, nil
}

func (f files) putFile(ctx context.Context, in *Upload) (*struct{}, error) {
	create := apiclient.ResourceAttributes{Verb: "create", Resource: "chatmessages", Namespace: in.Namespace}
	if err := may(ctx, f.api.client, create, "parley-chat-user"); err != nil {
		return nil, err
	}
	stored := v1beta1.StoredFile{SHA256: in.SHA256, Size: in.size}
	switch {
	case in.size < 0:
		return nil, badRequest("the size of the file is not known: send the header Content-Length")
	case in.size == 0:
		return nil, badRequest("the file is empty")
	case in.size > v1beta1.MaxStoredFileBytes:
		return nil, refused{&refusal.Error{Status: http.StatusRequestEntityTooLarge, Reason: refusal.TooLarge,
			Message: fmt.Sprintf("the file has %d bytes, and a file may have at most 3.5 MiB", in.size)}}
	}
	uid, err := f.key(ctx, &in.OfFile)
	if err != nil {
		return nil, err
	}
	if err := f.checkQuota(ctx, in.Namespace, uid, stored); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	err = f.store.Files().Write(ctx, in.Namespace, uid, stored, in.body)
	if broken, ok := errors.AsType[bodyError](err); ok {
		return nil, badRequest("the file did not arrive: %v", broken)
	}
	if errors.Is(err, archive.ErrNotAsNamed) {
		return nil, badRequest("%v", archive.ErrNotAsNamed)
	}
	return nil, fromStore(err)
}

// checkQuota refuses a file that would exceed what the namespace may store. Uploads at the same time do not see each
// other.
func (f files) checkQuota(ctx context.Context, namespace, uid string, stored v1beta1.StoredFile) error {
	quotas, err := f.Quotas(ctx, namespace)
	if err != nil {
		return err
	}
	limit, quota := capacity.StoredFiles(quotas)
	by, raise := "ChatQuota "+quota, "raise spec.storedFiles there"
	if limit == nil {
		limit = resource.NewQuantity(f.Limit, resource.BinarySI)
		by, raise = "the gateway's --max-stored-files", "set spec.storedFiles in a ChatQuota of namespace "+namespace
	}
	used := int64(0)
	for other, err := range f.store.Files().List(ctx, namespace, "") {
		if err != nil {
			return fromStore(err)
		}
		if other.UID != uid || other.SHA256 != stored.SHA256 {
			used += other.Size
		}
	}
	if used+stored.Size <= limit.Value() {
		return nil
	}
	return refused{&refusal.Error{Status: http.StatusForbidden, Reason: refusal.StoredFilesExceeded,
		Message: fmt.Sprintf("%s allows %s of files in namespace %s, which has %d bytes of them, and this file has %d: "+
			"delete chats with files, or %s", by, limit, namespace, used, stored.Size, raise)}}
}

// getFile streams the content as a download, so that browsers never show it as a page of the gateway.
func (f files) getFile(ctx context.Context, in *OfFile) (*huma.StreamResponse, error) {
	uid, err := f.key(ctx, in)
	if err != nil {
		return nil, err
	}
	from, err := f.store.Files().Open(ctx, in.Namespace, uid, in.SHA256)
	if errors.Is(err, archive.ErrNotFound) {
		return nil, notFound("chat %s has no file %s: it was not uploaded for this chat, or deleted", in.Chat, in.SHA256)
	}
	if err != nil {
		return nil, fromStore(err)
	}
	return download(ctx, f.api.options.Refused, from, in.SHA256), nil
}

// download answers with the content of a file.
func download(ctx context.Context, report func(context.Context, *refusal.Error), from io.ReadCloser,
	digest string) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(to huma.Context) {
		defer func() { _ = from.Close() }()
		for name, value := range map[string]string{"Content-Type": "application/octet-stream",
			"Content-Disposition": "attachment", "X-Content-Type-Options": "nosniff"} {
			to.SetHeader(name, value)
		}
		_, w := humago.Unwrap(to)
		out := slowclient.New(w, writeTimeout)
		out.IgnoreReads()
		defer out.Close()
		sum := sha256.New()
		_, err := io.Copy(io.MultiWriter(out, sum), from)
		if err == nil && hex.EncodeToString(sum.Sum(nil)) != digest {
			err = errors.New("the file differs from what was uploaded")
		}
		if err != nil {
			report(ctx, storeRefusal(err))
			panic(http.ErrAbortHandler) // The client sees that the answer is not complete.
		}
	}}
}

func notFound(format string, args ...any) error {
	return refused{&refusal.Error{Status: http.StatusNotFound, Reason: refusal.NotFound,
		Message: fmt.Sprintf(format, args...)}}
}
