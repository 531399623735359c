// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Archive describes a chat that was archived before its retention deleted it.
type Archive struct {
	// Chat and UID are those of the Chat.
	Chat string `json:"chat"`
	UID  string `json:"uid"`
	// Title of the chat, and the name of its ChatClass.
	Title     string `json:"title,omitempty"`
	ChatClass string `json:"chatClass,omitempty"`
	// CreatedAt is when the chat was created, and ArchivedAt when it was archived.
	CreatedAt  time.Time `json:"createdAt"`
	ArchivedAt time.Time `json:"archivedAt"`
	// Objects is how many objects of each kind there are.
	Objects map[string]int `json:"objects"`
	// Size in bytes, and SHA256, are those of the compressed object in the bucket.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Problem is why the archive cannot be described; empty: it can. Then there are Chat and UID only.
	Problem string `json:"problem,omitempty"`
}

// ArchivePage is a page of the list of archives.
type ArchivePage struct {
	// Archives of the page, by the day on which their chats were created.
	Archives []Archive `json:"archives"`
	// Continue is the token of the next page; empty for the last one.
	Continue string `json:"continue"`
}

// ListArchives lists at most 500 archives: of the chats of a name, or of those that were created in a year, a month or
// on a day, such as 2026-11; empty: of all. next is the Continue of the page before.
func (n Namespace) ListArchives(ctx context.Context, chat, created, next string) (*ArchivePage, error) {
	query := url.Values{}
	for name, value := range map[string]string{"chat": chat, "created": created, "continue": next} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return call[ArchivePage](ctx, n, http.MethodGet, query, nil, "archives")
}

// ReadArchive writes an archived chat as a List in JSON. What it has written after an error is not complete.
func (n Namespace) ReadArchive(ctx context.Context, chat, uid string, to io.Writer) error {
	path, err := n.archivePath(chat, uid)
	if err != nil {
		return err
	}
	response, err := n.client.send(ctx, http.MethodGet, path, nil, http.Header{}, nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(to, response.Body); err != nil {
		return fmt.Errorf("reading the archive of chat %s: %w", chat, err)
	}
	return nil
}

// ArchiveRedaction describes what a redaction changes in an archive.
type ArchiveRedaction struct {
	// Archive is the archive afterwards.
	Archive Archive `json:"archive"`
	// Objects are those that had the text.
	Objects []RedactedObject `json:"objects"`
	// Changed is whether the archive changes. Without Objects, only its entry does: that of an interrupted redaction.
	Changed bool `json:"changed"`
	// Left are the fields that still have the text, because they name something, as RESOURCE/NAME FIELD.
	Left []string `json:"left"`
}

// RedactedObject is an object of an archive that had the text.
type RedactedObject struct {
	// Object is RESOURCE/NAME.
	Object string `json:"object"`
	// Fields are the paths of the changed fields; none if the object was removed.
	Fields []string `json:"fields"`
}

// redactTimeout bounds a redaction whose caller sets no deadline: the gateway reads the archive several times.
const redactTimeout = 10 * time.Minute

// RedactArchive removes a text from an archived chat. A dry run changes nothing.
func (n Namespace) RedactArchive(ctx context.Context, chat, uid, text string, dryRun bool) (*ArchiveRedaction, error) {
	path, err := n.archivePath(chat, uid)
	if err != nil {
		return nil, err
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, redactTimeout)
		defer cancel()
	}
	out := &ArchiveRedaction{}
	in := map[string]any{"text": text, "dryRun": dryRun}
	if err := n.client.do(ctx, http.MethodPost, path+"/redact", nil, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// DeleteArchive deletes an archived chat.
func (n Namespace) DeleteArchive(ctx context.Context, chat, uid string) error {
	path, err := n.archivePath(chat, uid)
	if err != nil {
		return err
	}
	return n.client.do(ctx, http.MethodDelete, path, nil, nil, nil)
}

func (n Namespace) archivePath(chat, uid string) (string, error) {
	path, err := n.path("archives", chat)
	if err != nil {
		return "", err
	}
	return path + "/" + url.PathEscape(uid), nil
}
