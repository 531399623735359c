// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/internal/gateway/token"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// openFiles opens a door to a gateway that stores files, with the chats c and d.
func openFiles(t *testing.T, role string, change ...func(*rest.Options)) (*door, *blob.Bucket) {
	t.Helper()
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { check.OK(t, bucket.Close()) })
	own, err := apiclient.New(cluster.Config, "test")
	check.OK(t, err)
	d := open(t, role, append(change, func(o *rest.Options) {
		o.Archive = archive.New(bucket, time.Now)
		o.Files = rest.Files{
			Reader: func(ctx context.Context, token, namespace string) (string, *refusal.Error) {
				grant, no := checker(auth.Options{APIServerTokens: true}).Check(ctx, token,
					auth.Access{Namespace: namespace, Files: true})
				return grant.User, no
			},
			UID: func(ctx context.Context, namespace, name string) string {
				var chat v1beta1.Chat
				_ = cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &chat) // or there is none
				return string(chat.UID)
			},
			Quotas: func(ctx context.Context, namespace string) ([]v1beta1.ChatQuota, error) {
				list, err := own.Quotas(namespace).List(ctx, metav1.ListOptions{})
				return list.Items, err
			},
			Limit: 4 << 20,
		}
	})...)
	d.create(&v1beta1.Chat{ObjectMeta: d.meta("c")})
	d.create(&v1beta1.Chat{ObjectMeta: d.meta("d")})
	return d, bucket
}

// at is the path of a file of a chat.
func at(chat, content string) string {
	sum := sha256.Sum256([]byte(content))
	return "/chats/" + chat + "/files/" + hex.EncodeToString(sum[:])
}

// Security (a client of the gateway): cannot read or store a file without the right to get or create messages, nor read
// a file of another chat by its digest.
func TestFileIsUploadedAndReadWithCallersRights(t *testing.T) {
	t.Parallel()
	d, _ := openFiles(t, "parley-chat-user")
	content := strings.Repeat("<html>", 1<<19)
	for range 2 {
		d.does(http.StatusNoContent, "PUT", at("c", content), content)
	}
	d.account("viewer", "parley-chat-viewer")
	for _, audience := range [][]string{nil, {token.Audience}} {
		d.token = d.tokenOf("viewer", audience...)
		got := d.does(http.StatusOK, "GET", at("c", content), "")
		if got.text != content || got.header.Get("Content-Type") != "application/octet-stream" ||
			got.header.Get("Content-Disposition") != "attachment" || got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("got %d bytes, %v", len(got.text), got.header)
		}
		// The digest opens nothing in another chat.
		d.refuses(http.StatusNotFound, "NotFound", "chat d has no file", "GET", at("d", content), "")
		d.refuses(http.StatusNotFound, "NotFound", "no chat e", "GET", at("e", content), "")
		d.refuses(http.StatusForbidden, "Forbidden", "", "PUT", at("c", content), content)
	}
	d.account("outsider")
	d.token = d.tokenOf("outsider")
	d.refuses(http.StatusForbidden, "Forbidden", "parley-chat-viewer", "GET", at("c", content), "")
	d.refuses(http.StatusForbidden, "Forbidden", "parley-chat-user", "PUT", at("c", content), content)
	d.token = ""
	d.refuses(http.StatusUnauthorized, "Unauthorized", "token", "GET", at("c", content), "")
}

func TestUnsuitableUploadIsRefused(t *testing.T) {
	t.Parallel()
	d, bucket := openFiles(t, "parley-chat-user")
	d.refuses(http.StatusBadRequest, "BadRequest", "SHA-256", "PUT", at("c", "a"), "b")
	d.refuses(http.StatusBadRequest, "BadRequest", "empty", "PUT", at("c", ""), "")
	d.refuses(http.StatusBadRequest, "BadRequest", "sha256", "PUT", "/chats/c/files/abc", "abc")
	d.refuses(http.StatusNotFound, "NotFound", "no chat e", "PUT", at("e", "a"), "a")
	d.refusesHeader("413 Request Entity Too Large", "PUT", at("c", "a"), v1beta1.MaxStoredFileBytes+1)
	if found, err := bucket.List(nil).Next(t.Context()); found != nil {
		t.Errorf("the bucket has %v, %v", found, err)
	}
}

// refusesHeader sends a request without its body, which must be refused.
func (d *door) refusesHeader(status, method, path string, size int64) {
	d.t.Helper()
	line, err := bufio.NewReader(d.announces(d.token, method, path, size)).ReadString('\n')
	check.OK(d.t, err)
	check.Equal(d.t, "status", "HTTP/1.1 "+status, strings.TrimSpace(line))
}

// announces sends the header of a request without its body.
func (d *door) announces(token, method, path string, size int64) net.Conn {
	d.t.Helper()
	address, err := url.Parse(d.url)
	check.OK(d.t, err)
	connection, err := net.Dial("tcp", address.Host)
	check.OK(d.t, err)
	d.t.Cleanup(func() { _ = connection.Close() }) // The gateway may have closed it.
	_, err = fmt.Fprintf(connection, "%s %s HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: %d\r\n\r\n", method, address.Path+path, token, size)
	check.OK(d.t, err)
	return connection
}

func TestSlowUploadsBlockOnlyUploads(t *testing.T) {
	t.Parallel()
	d, _ := openFiles(t, "parley-chat-user", func(o *rest.Options) { o.Requests = 1 })
	d.does(http.StatusNoContent, "PUT", at("d", "z"), "z")
	anna := d.token
	for i := range 5 {
		reason := "TooManyRequests"
		if i == 4 { // The others have a quarter each.
			reason = "GatewayFull"
		}
		waiting.Until(t, time.Minute, "an upload is refused with "+reason, func() bool {
			d.announces(d.token, "PUT", at("c", "a"), 1)
			return d.ask("PUT", at("d", "y"), "y").body["reason"] == reason
		})
		d.token = d.other(fmt.Sprintf("ben-%d", i))
	}
	d.token = anna
	d.does(http.StatusOK, "GET", "/chats", "")
	d.does(http.StatusOK, "GET", at("d", "z"), "")
}

// other is the token of another account that may upload.
func (d *door) other(name string) string {
	d.t.Helper()
	d.account(name, "parley-chat-user")
	return d.tokenOf(name)
}

func TestRefusedUploadIsAnsweredBeforeItsBody(t *testing.T) {
	t.Parallel()
	d, _ := openFiles(t, "parley-chat-viewer")
	d.refusesHeader("403 Forbidden", "PUT", at("c", "a"), 1)
}

func TestQuotaLimitsStoredFiles(t *testing.T) {
	t.Parallel()
	d, _ := openFiles(t, "parley-chat-user")
	large := strings.Repeat("x", 3<<20)
	d.does(http.StatusNoContent, "PUT", at("c", large), large)
	d.does(http.StatusNoContent, "PUT", at("c", large), large) // It takes no more than once.
	d.refuses(http.StatusForbidden, "StoredFilesExceeded",
		"--max-stored-files allows 4Mi of files in namespace "+d.namespace, "PUT", at("d", large), large)
	for name, limit := range map[string]string{"b": "0", "a": "1Gi"} {
		d.create(&v1beta1.ChatQuota{ObjectMeta: d.meta(name),
			Spec: v1beta1.ChatQuotaSpec{StoredFiles: limit}})
	}
	d.refuses(http.StatusForbidden, "StoredFilesExceeded", "ChatQuota b allows 0 of files", "PUT", at("d", "x"), "x")
	var quota v1beta1.ChatQuota
	quota.ObjectMeta = d.meta("b")
	check.OK(t, cluster.Client.Delete(t.Context(), &quota))
	d.does(http.StatusNoContent, "PUT", at("d", large), large)
}

func TestDamagedFileBreaksTheAnswerOff(t *testing.T) {
	t.Parallel()
	d, bucket := openFiles(t, "parley-chat-user")
	chat := chattest.In(d.namespace, chattest.Chat("c"))
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(chat), chat))
	d.does(http.StatusNoContent, "PUT", at("c", "abc"), "abc")
	key := "files/" + d.namespace + "/" + string(chat.UID) + strings.TrimPrefix(at("c", "abc"), "/chats/c/files")
	check.OK(t, bucket.WriteAll(t.Context(), key, []byte("abd"), nil))
	d.breaksOff(at("c", "abc"))
}

func TestGatewayWithoutStoreTakesNoFiles(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	d.refuses(http.StatusNotFound, "NotFound", "--archive-url", "PUT", at("c", "a"), "a")
}
