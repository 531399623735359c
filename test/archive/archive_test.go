// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/controllers"
	store "parley.dev/parley/internal/archive"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// old creates a chat that is to be archived and deleted at once, with a note. It rests, because it has no message to
// answer. It is suspended until its objects are there.
func old(t *testing.T, prepare ...func(chat, sub *v1beta1.Chat)) *v1beta1.Chat {
	t.Helper()
	ns := cluster.Namespace(t, "archive")
	chat := chattest.In(ns, chattest.Chat("old"))
	chat.Spec.Suspend = true
	chat.Spec.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(1)), Archive: new(true)}
	cluster.Create(t, chat)
	note := chattest.In(ns, chattest.User("old", "note"))
	note.Spec.Visibility, note.Spec.Content = v1beta1.VisibleToUsers, strings.Repeat("A note. ", 100)
	cluster.Create(t, note)
	sub := chattest.In(ns, chattest.Chat("sub", chattest.ChildOf("old")))
	cluster.Create(t, sub)
	for _, p := range prepare {
		p(chat, sub)
	}
	patch(t, chat, `{"spec":{"suspend":false}}`)
	return chat
}

func patch(t *testing.T, o client.Object, change string) {
	t.Helper()
	check.OK(t, cluster.Client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(change))))
}

func isGone(t *testing.T, o client.Object) bool {
	t.Helper()
	err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err != nil
}

// problem waits until the chat says why it cannot be archived, and returns that.
func problem(t *testing.T, chat *v1beta1.Chat) (c metav1.Condition) {
	t.Helper()
	eventually(t, "the chat says why it is kept", func() bool {
		if isGone(t, chat) {
			t.Fatal("the chat is deleted")
		}
		found := meta.FindStatusCondition(chat.Status.Conditions, v1beta1.ConditionArchiveUnavailable)
		if found != nil {
			c = *found
		}
		return found != nil
	})
	if wait := chat.Status.Wait; wait == nil || wait.For != v1beta1.WaitForArchiveStore || wait.Message != c.Message ||
		c.Reason != string(v1beta1.ReasonArchiveWriteFailed) {
		t.Errorf("the wait is %+v, the condition %+v", wait, c)
	}
	return c
}

// archived is what the archive of the chat has, as KIND/NAME; none if there is no archive.
func archived(t *testing.T, chat *v1beta1.Chat) (names []string) {
	t.Helper()
	reader := open(t, s3.url(s3.address), rightSecret)
	entry, err := reader.Get(t.Context(), chat.Namespace, chat.Name, string(chat.UID))
	if err != nil {
		return nil
	}
	var text bytes.Buffer
	check.OK(t, reader.Read(t.Context(), entry, &text))
	var list struct {
		Items []metav1.PartialObjectMetadata
	}
	check.OK(t, json.Unmarshal(text.Bytes(), &list))
	for _, o := range list.Items {
		names = append(names, o.Kind+"/"+o.Name)
	}
	slices.Sort(names)
	return names
}

var whole = []string{"Chat/old", "Chat/sub", "ChatMessage/note"}

func TestChatIsArchivedAndDeleted(t *testing.T) {
	reader := open(t, s3.url(s3.address), rightSecret)
	chat := old(t, func(chat, sub *v1beta1.Chat) {
		upload(t, reader, chat, strings.Repeat("a large file ", 1<<19))
		upload(t, reader, sub, "of the sub-chat")
	})
	startManager(t, reader)
	eventually(t, "the chat is deleted", func() bool { return isGone(t, chat) })
	check.Equal(t, "archive", whole, archived(t, chat))
	for _, content := range []string{strings.Repeat("a large file ", 1<<19), "of the sub-chat"} {
		from, err := reader.Files().OpenArchived(t.Context(), chat.Namespace, chat.Name, string(chat.UID), digestOf(content))
		check.OK(t, err)
		check.Equal(t, "size of the archived file", int64(len(content)), from.Size())
		check.OK(t, from.Close())
	}
	eventually(t, "the files in the cluster's part are deleted", func() bool { return len(files(t, reader, chat)) == 0 })
	listed, _, err := reader.List(t.Context(), chat.Namespace, "", store.MaxPage, "")
	check.OK(t, err)
	named, err := reader.Of(t.Context(), chat.Namespace, "old")
	check.OK(t, err)
	check.Equal(t, "entries", named, listed)
	check.OK(t, reader.Delete(t.Context(), chat.Namespace, "old", string(chat.UID)))
	check.Equal(t, "archive", nil, archived(t, chat))
}

func TestWrongKeyIsRefused(t *testing.T) {
	startManager(t, open(t, s3.url(s3.address), "wrong"))
	chat := old(t)
	c := problem(t, chat)
	t.Log(c.Message)
	if !strings.Contains(c.Message, "SignatureDoesNotMatch") || archived(t, chat) != nil {
		t.Errorf("the condition is %q", c.Message)
	}
}

func TestDamagedBodyIsRefused(t *testing.T) {
	damaged := s3.proxy(t, func(r *http.Request) int {
		if r.Method != http.MethodPut {
			return whatever
		}
		return damageRequest
	})
	startManager(t, open(t, s3.url(damaged), rightSecret))
	chat := old(t)
	c := problem(t, chat)
	t.Log(c.Message)
	if !strings.Contains(c.Message, "XAmzContentSHA256Mismatch") && !strings.Contains(c.Message, "BadDigest") ||
		archived(t, chat) != nil {
		t.Errorf("the condition is %q", c.Message)
	}
}

func TestDamagedAnswerKeepsTheChat(t *testing.T) {
	damaged := s3.proxy(t, func(r *http.Request) int {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, ".json.gz") {
			return whatever
		}
		return damageAnswer
	})
	startManager(t, open(t, s3.url(damaged), rightSecret))
	c := problem(t, old(t))
	t.Log(c.Message)
}

// TestNoFaultOfTheStoreLosesAChat lets each request to the store fail, one after another, and end the manager: before
// the store has seen it, and after. The next manager finishes.
func TestNoFaultOfTheStoreLosesAChat(t *testing.T) {
	reader := open(t, s3.url(s3.address), rightSecret)
	hasFile := func(chat *v1beta1.Chat) {
		from, err := reader.Files().OpenArchived(t.Context(), chat.Namespace, chat.Name, string(chat.UID), digestOf("a file"))
		check.OK(t, err)
		check.OK(t, from.Close())
	}
	for _, fault := range []int{refuse, loseAnswer} {
		for n := 1; ; n++ {
			requests := 0
			faulty := s3.proxy(t, func(*http.Request) int {
				if requests++; requests >= n {
					return fault
				}
				return whatever
			})
			stop := startManager(t, open(t, s3.url(faulty), rightSecret))
			chat := old(t, func(_, sub *v1beta1.Chat) { upload(t, reader, sub, "a file") })
			deleted := false
			eventually(t, "the chat is deleted, or says why not", func() bool {
				deleted = isGone(t, chat)
				return deleted || meta.FindStatusCondition(chat.Status.Conditions,
					v1beta1.ConditionArchiveUnavailable) != nil
			})
			stop()
			if deleted {
				check.Equal(t, "archive", whole, archived(t, chat))
				hasFile(chat)
				t.Logf("the store is asked %d times", n-1)
				break
			}
			stop = startManager(t, open(t, s3.url(s3.address), rightSecret))
			eventually(t, "the next manager deletes the chat", func() bool { return isGone(t, chat) })
			check.Equal(t, "archive", whole, archived(t, chat))
			hasFile(chat)
			stop()
		}
	}
}

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// upload stores a file of a chat.
func upload(t *testing.T, to *store.Store, chat *v1beta1.Chat, content string) v1beta1.StoredFile {
	t.Helper()
	file := v1beta1.StoredFile{SHA256: digestOf(content), Size: int64(len(content))}
	check.OK(t, to.Files().Write(t.Context(), chat.Namespace, string(chat.UID), file, strings.NewReader(content)))
	return file
}

// files are the digests of the files of a chat.
func files(t *testing.T, from *store.Store, chat *v1beta1.Chat) (digests []string) {
	t.Helper()
	for f, err := range from.Files().List(t.Context(), chat.Namespace, string(chat.UID)) {
		check.OK(t, err)
		digests = append(digests, f.SHA256)
	}
	return digests
}

func TestFilesAreDeletedWithTheirChat(t *testing.T) {
	ns, bucket := cluster.Namespace(t, "files"), open(t, s3.url(s3.address), rightSecret)
	first, second := chattest.In(ns, chattest.Chat("first")), chattest.In(ns, chattest.Chat("second"))
	for _, chat := range []*v1beta1.Chat{first, second} {
		chat.Spec.Suspend = true
		cluster.Create(t, chat)
		upload(t, bucket, chat, strings.Repeat("a large file ", 1<<19))
		small := upload(t, bucket, chat, "a small file")
		message := chattest.In(ns, chattest.User(chat.Name, chat.Name+"-file"))
		message.Spec.Content, message.Spec.Parts = "", []v1beta1.MessagePart{{Type: v1beta1.PartFile,
			File: &v1beta1.MessageFile{Name: "small.txt", MediaType: "text/plain", Stored: &small}}}
		cluster.Create(t, message)
	}
	check.OK(t, cluster.Client.Delete(t.Context(), second)) // While no manager runs.
	startManager(t, bucket, func(o *controllers.Options) {
		o.Now = func() time.Time { return time.Now().Add(31 * 24 * time.Hour) }
	})
	eventually(t, "the sweep deletes the files of the chat that is gone", func() bool {
		return len(files(t, bucket, second)) == 0
	})
	eventually(t, "the other chat keeps the file that its message names", func() bool {
		return slices.Equal(files(t, bucket, first), []string{digestOf("a small file")})
	})
	check.OK(t, cluster.Client.Delete(t.Context(), first))
	eventually(t, "the files are deleted with the chat", func() bool { return len(files(t, bucket, first)) == 0 })
}

func TestMismatchedFileIsNotStored(t *testing.T) {
	chat := chattest.In("ns", chattest.Chat("c"))
	chat.UID = "u1"
	to := open(t, s3.url(s3.address), rightSecret)
	for _, size := range []int64{3, 6 << 20} { // An object in one request, and one in several.
		file := v1beta1.StoredFile{SHA256: strings.Repeat("a", 64), Size: size}
		if err := to.Files().Write(t.Context(), "ns", "u1", file, bytes.NewReader(make([]byte, size))); !errors.Is(err,
			store.ErrNotAsNamed) {
			t.Errorf("got %v", err)
		}
	}
	check.Equal(t, "files", nil, files(t, to, chat))
}
