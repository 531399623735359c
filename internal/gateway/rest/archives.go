// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/chat/history/redact"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/slowclient"
)

const (
	// writeTimeout is how long a client may take to read a piece of an archive.
	writeTimeout = 30 * time.Second
	// redactTimeout is how long a redaction may take once its request has been read.
	redactTimeout = 10 * time.Minute
)

const (
	getArchive      = "getArchive"
	getArchivedFile = "getArchivedFile"
	redactArchive   = "redactArchive"
)

// ListArchives are the parameters of a list of archives.
type ListArchives struct {
	InNamespace

	Chat     string `query:"chat" pattern:"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" maxLength:"253" doc:"Only those of chats of this name, of which there is one for each UID. Without created, limit and continue."`
	Created  string `query:"created" pattern:"^[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?$" doc:"Only those of chats that were created in this year, month or on this day, such as 2026-11."`
	Limit    int    `query:"limit" minimum:"1" maximum:"500" default:"500" doc:"How many to list at most."`
	Continue string `query:"continue" maxLength:"4096" doc:"From the list before, for the next ones."`
}

// ArchiveList is a list of archives.
type ArchiveList struct {
	Body struct {
		Archives []archive.Entry `json:"archives" doc:"The archives, by the day on which their chats were created."`
		Continue string          `json:"continue,omitempty" doc:"For the next ones; absent if there are none."`
	}
}

// OfArchive is the archive that a request is about.
type OfArchive struct {
	InNamespace

	Chat string `path:"chat" pattern:"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" maxLength:"253" doc:"The name that the Chat had."`
	UID  string `path:"uid" pattern:"^[-a-z0-9]+$" maxLength:"64" doc:"The UID that the Chat had."`
}

// RedactArchive removes a text from an archive. The text is in the body, because URLs are logged.
type RedactArchive struct {
	OfArchive

	Body struct {
		Text   string `json:"text" doc:"The text to remove, of at least 6 bytes."`
		DryRun bool   `json:"dryRun,omitempty" doc:"Whether to change nothing, and only report what would change."`
	}
}

// Resolve implements huma.Resolver: the body was read, and the redaction has its own time. When it is over, the request
// ends.
func (*RedactArchive) Resolve(ctx huma.Context) []error {
	_ = ctx.SetReadDeadline(time.Now().Add(redactTimeout)) // Where it is not supported, there is none either.
	return nil
}

// ArchiveRedaction is the outcome of a redaction.
type ArchiveRedaction struct{ Body *archive.Redaction }

// archives are the operations on them.
type archives struct {
	api   *api
	store *archive.Store // nil: there is none.
}

func (a archives) register() {
	const all, one = "/namespaces/{namespace}/archives", "/namespaces/{namespace}/archives/{chat}/{uid}"
	register(a.api, operation("listArchives", http.MethodGet, all, "List chats that were archived before their deletion",
		"For those who may list chats/archive.", http.StatusOK), a.listArchives)
	read := operation(getArchive, http.MethodGet, one, "Read an archived chat",
		"The Chat and its sub-chats, with their ChatMessages and ToolApprovals, as a List in JSON. An answer that breaks "+
			"off is not as it was written. For those who may get chats/archive.", http.StatusOK)
	register(a.api, read, a.getArchive)
	register(a.api, operation(getArchivedFile, http.MethodGet, one+"/files/{sha256}", "Read a file of an archived chat",
		"An answer that breaks off is not as it was uploaded. For those who may get chats/archive.", http.StatusOK),
		a.getFile)
	register(a.api, operation("deleteArchive", http.MethodDelete, one, "Delete an archived chat",
		"For those who may delete chats/archive.", http.StatusNoContent),
		func(ctx context.Context, in *OfArchive) (*struct{}, error) {
			if err := a.mayUseArchive(ctx, "delete", in.Namespace, in.Chat); err != nil {
				return nil, err
			}
			return nil, fromStore(a.store.Delete(ctx, in.Namespace, in.Chat, in.UID))
		})
	redaction := operation(redactArchive, http.MethodPost, one+"/redact", "Remove a text from an archived chat",
		"As a redaction of a chat in the cluster does. If another request changes the archive at the same time, the answer "+
			"is Conflict: repeat the request. For those who may redact chats.", http.StatusOK)
	redaction.Middlewares = huma.Middlewares{a.mayRedact}
	register(a.api, redaction, a.redactArchive)
}

// mayRedact refuses callers without the right before the body is read.
func (a archives) mayRedact(ctx huma.Context, next func(huma.Context)) {
	err := a.may(ctx.Context(), apiclient.ResourceAttributes{Verb: "redact", Resource: "chats",
		Namespace: ctx.Param("namespace")}, "parley-redact")
	if err == nil {
		next(ctx)
		return
	}
	no, ok := errors.AsType[refused](err)
	if !ok {
		no = refused{from(ctx.Context(), err)}
	}
	a.api.refuse(ctx, no.why)
}

func (a archives) listArchives(ctx context.Context, in *ListArchives) (*ArchiveList, error) {
	if err := a.mayUseArchive(ctx, "list", in.Namespace, ""); err != nil {
		return nil, err
	}
	out := &ArchiveList{}
	var err error
	if in.Chat != "" {
		out.Body.Archives, err = a.store.Of(ctx, in.Namespace, in.Chat)
	} else {
		out.Body.Archives, out.Body.Continue, err = a.store.List(ctx, in.Namespace, in.Created, in.Limit,
			in.Continue)
	}
	return out, fromStore(err)
}

// getArchive streams the list, which may be larger than the memory.
func (a archives) getArchive(ctx context.Context, in *OfArchive) (*huma.StreamResponse, error) {
	if err := a.mayUseArchive(ctx, "get", in.Namespace, in.Chat); err != nil {
		return nil, err
	}
	entry, err := a.store.Get(ctx, in.Namespace, in.Chat, in.UID)
	if err != nil {
		return nil, fromStore(err)
	}
	return &huma.StreamResponse{Body: func(to huma.Context) {
		to.SetHeader("Content-Type", "application/json")
		_, w := humago.Unwrap(to)
		out := slowclient.New(w, writeTimeout)
		out.IgnoreReads() // The request has ended; an archive may take longer than one may.
		defer out.Close()
		if err := a.store.Read(ctx, entry, out); err != nil {
			a.api.options.Refused(ctx, storeRefusal(err))
			panic(http.ErrAbortHandler) // The client sees that the answer is not complete.
		}
	}}, nil
}

// redactArchive removes a text. The log shows who did it and what came of it, and has nothing of the text.
func (a archives) redactArchive(ctx context.Context, in *RedactArchive) (*ArchiveRedaction, error) {
	text, err := redact.New(in.Body.Text)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	switch chat, err := a.api.client.Chats(in.Namespace).Get(ctx, in.Chat); {
	case err == nil && string(chat.UID) == in.UID:
		return nil, refused{&refusal.Error{Status: http.StatusConflict, Reason: refusal.Conflict, Message: fmt.Sprintf(
			"chat %s is still in the cluster, and will be archived again: redact it first", in.Chat)}}
	case err != nil && !apierrors.IsNotFound(err):
		return nil, err
	}
	log := a.api.options.Log.With("caller", callerOf(ctx), "namespace", in.Namespace, "chat", in.Chat, "uid", in.UID)
	if !in.Body.DryRun {
		log.InfoContext(ctx, "redacting an archive")
	}
	done, err := a.store.Redact(ctx, in.Namespace, in.Chat, in.UID, text, in.Body.DryRun)
	if err != nil {
		if !in.Body.DryRun {
			log.WarnContext(ctx, "the redaction of an archive failed: part of it may be done", "error", archive.Reason(err))
		}
		return nil, fromStore(err)
	}
	if !in.Body.DryRun {
		log.InfoContext(ctx, "the redaction of an archive is complete", "changed", done.Changed, "objects",
			len(done.Objects), "sha256", done.Archive.SHA256)
	}
	return &ArchiveRedaction{done}, nil
}

// OfArchivedFile is the file of an archive that a request is about.
type OfArchivedFile struct {
	OfArchive

	SHA256 string `path:"sha256" pattern:"^[0-9a-f]{64}$" doc:"The SHA-256 of the content, in hexadecimal digits."`
}

func (a archives) getFile(ctx context.Context, in *OfArchivedFile) (*huma.StreamResponse, error) {
	if err := a.mayUseArchive(ctx, "get", in.Namespace, in.Chat); err != nil {
		return nil, err
	}
	from, err := a.store.Files().OpenArchived(ctx, in.Namespace, in.Chat, in.UID, in.SHA256)
	if errors.Is(err, archive.ErrNotFound) {
		return nil, notFound("the archive of chat %s has no file %s", in.Chat, in.SHA256)
	}
	if err != nil {
		return nil, fromStore(err)
	}
	return download(ctx, a.api.options.Refused, from, in.SHA256), nil
}

// mayUseArchive asks the API server whether the caller may do this with chats/archive, a subresource that exists only
// for this question.
func (a archives) mayUseArchive(ctx context.Context, verb, namespace, chat string) error {
	role := "parley-chat-viewer"
	if verb == "delete" {
		role = "parley-chat-admin"
	}
	return a.may(ctx, apiclient.ResourceAttributes{Verb: verb, Subresource: "archive", Resource: "chats",
		Namespace: namespace, Name: chat}, role)
}

// may asks the API server whether the caller has a right, which the role gives.
func (a archives) may(ctx context.Context, right apiclient.ResourceAttributes, role string) error {
	if a.store == nil {
		return notFound("this gateway has no archive: its administrator can start it with --archive-url")
	}
	return may(ctx, a.api.client, right, role)
}

// fromStore converts an error of the store.
func fromStore(err error) error {
	if err == nil {
		return nil
	}
	return refused{storeRefusal(err)}
}

func storeRefusal(err error) *refusal.Error {
	if errors.Is(err, archive.ErrNotFound) {
		return &refusal.Error{Status: http.StatusNotFound, Reason: refusal.NotFound, Message: err.Error()}
	}
	if errors.Is(err, archive.ErrConflict) {
		return &refusal.Error{Status: http.StatusConflict, Reason: refusal.Conflict, Message: err.Error()}
	}
	if errors.Is(err, archive.ErrPage) {
		return &refusal.Error{Status: http.StatusBadRequest, Reason: refusal.BadRequest, Message: err.Error()}
	}
	return &refusal.Error{Status: http.StatusBadGateway, Reason: refusal.ArchiveUnavailable,
		Message: "the object storage cannot be used: " + archive.Reason(err), Cause: err}
}
