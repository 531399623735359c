// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// openArchive opens a door to a gateway with the archive of one chat.
func openArchive(t *testing.T, role string, change ...func(*rest.Options)) (*door, *blob.Bucket) {
	t.Helper()
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { check.OK(t, bucket.Close()) })
	store := archive.New(bucket, time.Now)
	d := open(t, role, append(change, func(o *rest.Options) { o.Archive = store })...)
	chat := &v1beta1.Chat{ObjectMeta: d.meta("old"), TypeMeta: metav1.TypeMeta{Kind: "Chat"}}
	chat.UID, chat.CreationTimestamp, chat.Status.Title = "u1", metav1.NewTime(chattest.Now), "hunter2-2026"
	_, err := store.Write(t.Context(), chat, func(yield func(archive.Object, error) bool) { yield(chat, nil) })
	check.OK(t, err)
	return d, bucket
}

func TestArchivesAreReadWithTheCallersRights(t *testing.T) {
	t.Parallel()
	d, _ := openArchive(t, "parley-chat-viewer")
	for _, query := range []string{"", "?chat=old", "?created=2026-01", "?limit=1"} {
		if got := d.does(http.StatusOK, "GET", "/archives"+query, ""); !strings.Contains(got.text, `"uid":"u1"`) {
			t.Errorf("%s lists %s", query, got.text)
		}
	}
	if got := d.does(http.StatusOK, "GET", "/archives?created=2025", ""); strings.Contains(got.text, "u1") {
		t.Errorf("another year has %s", got.text)
	}
	if got := d.does(http.StatusOK, "GET", "/archives/old/u1", ""); got.body["kind"] != "List" ||
		got.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %s", got.text)
	}
	d.refuses(http.StatusNotFound, "NotFound", "no such archive", "GET", "/archives/old/u2", "")
	d.refuses(http.StatusBadRequest, "BadRequest", "created", "GET", "/archives?created=yesterday", "")
	d.refuses(http.StatusForbidden, "Forbidden", "parley-chat-admin", "DELETE", "/archives/old/u1", "")
	d.account("outsider")
	d.token = d.tokenOf("outsider")
	for _, path := range []string{"/archives", "/archives/old/u1"} {
		d.refuses(http.StatusForbidden, "Forbidden", "parley-chat-viewer", "GET", path, "")
	}
	d.account("admin", "parley-chat-admin")
	d.token = d.tokenOf("admin")
	d.does(http.StatusNoContent, "DELETE", "/archives/old/u1", "")
	d.refuses(http.StatusNotFound, "NotFound", "no such archive", "DELETE", "/archives/old/u1", "")
}

func TestRedactionOfArchivesTakesTheRight(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	d, bucket := openArchive(t, "parley-chat-admin", func(o *rest.Options) {
		o.Log = slog.New(slog.NewJSONHandler(&log, nil))
	})
	const at, body = "/archives/old/u1/redact", `{"text":"hunter2-2026"}`
	d.refuses(http.StatusForbidden, "Forbidden", "parley-redact", "POST", at, body)
	d.account("redactor", "parley-redact")
	d.token = d.tokenOf("redactor")
	if got := d.does(http.StatusOK, "GET", "/archives?chat=old", ""); !strings.Contains(got.text, "hunter2-2026") {
		t.Errorf("the title is not in %s", got.text)
	}
	d.refuses(http.StatusForbidden, "Forbidden", "parley-chat-viewer", "GET", "/archives/old/u1", "")
	d.refuses(http.StatusBadRequest, "BadRequest", "less than 6 bytes", "POST", at, `{"text":"x"}`)
	d.refuses(http.StatusNotFound, "NotFound", "no such archive", "POST", "/archives/old/u2/redact", body)
	log.Reset()
	d.does(http.StatusOK, "POST", at, `{"text":"hunter2-2026","dryRun":true}`)
	if got := d.does(http.StatusOK, "GET", "/archives?chat=old", ""); !strings.Contains(got.text, "hunter2-2026") {
		t.Errorf("after a dry run, the list is %s", got.text)
	}
	check.Equal(t, "logged before", "", log.String())
	if got := d.does(http.StatusOK, "POST", at, body); !strings.Contains(got.text, `{"object":"chats/old","fields":["status.title"]}`) ||
		strings.Contains(got.text, "hunter2") {
		t.Errorf("got %s", got.text)
	}
	if got := d.does(http.StatusOK, "GET", "/archives?chat=old", ""); strings.Contains(got.text, "hunter2") {
		t.Errorf("after the redaction, the list is %s", got.text)
	}
	check.Contains(t, log.String(), `"msg":"redacting an archive","caller":"system:serviceaccount:`+d.namespace+`:redactor"`,
		`"chat":"old"`, `"changed":true,"objects":1`)
	log.Reset()
	if got := d.does(http.StatusOK, "POST", at, body); got.body["changed"] != false {
		t.Errorf("the repetition changes %s", got.text)
	}
	check.Contains(t, log.String(), `"changed":false,"objects":0`)
	check.OK(t, bucket.Delete(t.Context(), "index/"+d.namespace+"/2026-01-02/old/u1.json"))
	d.refuses(http.StatusNotFound, "NotFound", "no such archive", "POST", at, body)
	check.Contains(t, log.String(), "the redaction of an archive failed")
	if strings.Contains(log.String(), "hunter2") {
		t.Errorf("the log has the text: %s", log.String())
	}

	live := &v1beta1.Chat{ObjectMeta: d.meta("live")}
	d.create(live)
	live.Kind = "Chat"
	_, err := archive.New(bucket, time.Now).Write(t.Context(), live,
		func(yield func(archive.Object, error) bool) { yield(live, nil) })
	check.OK(t, err)
	d.refuses(http.StatusConflict, "Conflict", "still in the cluster", "POST",
		"/archives/live/"+string(live.UID)+"/redact", body)
}

func TestRightToRedactIsCheckedBeforeTheBody(t *testing.T) {
	t.Parallel()
	d, _ := openArchive(t, "parley-chat-admin")
	d.refusesHeader("403 Forbidden", "POST", "/archives/old/u1/redact", 1<<20)
}

func TestArchivedFileIsReadWithCallersRights(t *testing.T) {
	t.Parallel()
	d, bucket := openArchive(t, "parley-chat-viewer")
	path := "/archives/old/u1" + strings.TrimPrefix(at("c", "abc"), "/chats/c")
	d.refuses(http.StatusNotFound, "NotFound", "has no file", "GET", path, "")
	check.OK(t, bucket.WriteAll(t.Context(), "archived-files/"+d.namespace+strings.Replace(path[len("/archives"):],
		"/files", "", 1), []byte("abc"), nil))
	if got := d.does(http.StatusOK, "GET", path, ""); got.text != "abc" ||
		got.header.Get("Content-Disposition") != "attachment" {
		t.Errorf("got %s, %v", got.text, got.header)
	}
	d.account("outsider")
	d.token = d.tokenOf("outsider")
	d.refuses(http.StatusForbidden, "Forbidden", "parley-chat-viewer", "GET", path, "")
}

func TestDamagedArchiveBreaksTheAnswerOff(t *testing.T) {
	t.Parallel()
	d, bucket := openArchive(t, "parley-chat-viewer")
	key := "chats/" + d.namespace + "/old/u1.json.gz"
	raw, err := bucket.ReadAll(t.Context(), key)
	check.OK(t, err)
	attributes, err := bucket.Attributes(t.Context(), key)
	check.OK(t, err)
	check.OK(t, bucket.WriteAll(t.Context(), key, append(raw, raw...), &blob.WriterOptions{Metadata: attributes.Metadata}))
	d.breaksOff("/archives/old/u1")
}

// breaksOff reads an answer that is not complete.
func (d *door) breaksOff(path string) {
	d.t.Helper()
	request, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, d.url+path, nil)
	check.OK(d.t, err)
	request.Header.Set("Authorization", "Bearer "+d.token)
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		_, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
	}
	if err == nil {
		d.t.Error("the answer looks complete")
	}
}

func TestGatewayWithoutArchiveSaysSo(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-viewer")
	d.refuses(http.StatusNotFound, "NotFound", "--archive-url", "GET", "/archives", "")
}
