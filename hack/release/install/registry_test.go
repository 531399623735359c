// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	nodeIP       = "192.168.77.1"
	registryHost = "registry.parley.test"
	registry     = registryHost + ":5000"
	// chatHost is where nginx serves the gateway.
	chatHost = "chat.parley.test"
	user     = "puller"
	password = "correct horse"
)

// registryLogin is the configuration of a Docker client with a login for the registry.
var registryLogin = `{"auths": {"` + registry + `": {"auth": "` +
	base64.StdEncoding.EncodeToString([]byte(user+":"+password)) + `"}}}`

// Files of the certificate of the registry and of nginx, which is its own authority, and of its key.
func certFile() string { return filepath.Join(temporary, "tls.crt") }
func keyFile() string  { return filepath.Join(temporary, "tls.key") }

// startRegistry starts Debian's docker-registry with TLS and a login, and has containerd trust its certificate.
func startRegistry(ctx context.Context) error {
	if _, err := run(ctx, "", "openssl", "req", "-x509", "-newkey=ec", "-pkeyopt=ec_paramgen_curve:P-256", "-nodes",
		"-days=1", "-subj=/CN=install-test", "-addext=subjectAltName=DNS:"+registryHost+",DNS:"+chatHost,
		"-out="+certFile(), "-keyout="+keyFile()); err != nil {
		return err
	}
	users, err := run(ctx, password, "htpasswd", "-niB", user)
	if err != nil {
		return err
	}
	config := fmt.Sprintf(`{version: 0.1, log: {level: error, accesslog: {disabled: true}},
storage: {filesystem: {rootdirectory: %[1]s/images}}, auth: {htpasswd: {realm: parley, path: %[1]s/htpasswd}},
http: {addr: "%[2]s:5000", tls: {certificate: %[3]s, key: %[4]s}}}`, temporary, nodeIP, certFile(), keyFile())
	trusted := "/etc/containerd/certs.d/" + registry
	host := fmt.Sprintf("[host.%q]\nca = %q\n", "https://"+registry, certFile())
	hosts, err := os.ReadFile("/etc/hosts")
	err = errors.Join(err, os.MkdirAll(trusted, 0o755),
		os.WriteFile(filepath.Join(temporary, "htpasswd"), []byte(users), 0o600),
		os.WriteFile(filepath.Join(temporary, "registry.yml"), []byte(config), 0o600),
		os.WriteFile("/etc/hosts", fmt.Appendf(hosts, "%s %s %s\n", nodeIP, registryHost, chatHost), 0o644),
		os.WriteFile(trusted+"/hosts.toml", []byte(host), 0o644))
	if err != nil {
		return fmt.Errorf("configuring the registry: %w", err)
	}
	return start(ctx, "https://"+registry+"/v2/", "docker-registry", "serve", filepath.Join(temporary, "registry.yml"))
}

// start starts a server that runs until ctx is done, and waits until something answers at the URL.
func start(ctx context.Context, url, program string, args ...string) error {
	server := exec.CommandContext(ctx, program, args...)
	var said bytes.Buffer
	server.Stderr = &said
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGTERM) } // nginx then ends its other processes.
	if err := server.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		if _, err := get(ctx, url); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case err := <-ended:
			return fmt.Errorf("%s ended: %w\n%s", program, err, said.String())
		}
	}
}

// get returns the status with which a server answers.
func get(ctx context.Context, url string) (int, error) {
	authority, err := os.ReadFile(certFile())
	if err != nil {
		return 0, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func pushRelease(ctx context.Context) error { return push(ctx, registryLogin) }

// push pushes the image of the release, as "make release-push" does, with the configuration of a Docker client.
func push(ctx context.Context, config string) error {
	if err := os.WriteFile(filepath.Join(temporary, "config.json"), []byte(config), 0o600); err != nil {
		return err
	}
	repository, _, _ := strings.Cut(reference, "/parley:")
	_, err := run(ctx, "", "env", "DOCKER_CONFIG="+temporary, "SSL_CERT_FILE="+certFile(), os.Getenv("MAKE_RELEASE"),
		"-push="+filepath.Join(release, "images", "parley"), "-version="+filepath.Base(release), "-registry="+repository)
	return err
}

func TestRegistryRequiresLogin(t *testing.T) {
	if err := push(t.Context(), "{}"); err == nil || !strings.Contains(err.Error(), "401 Unauthorized") {
		t.Errorf("pushing without a login: %v", err)
	}
	status, err := get(t.Context(), "https://"+registry+"/v2/team/parley/manifests/"+filepath.Base(release))
	if err != nil || status != http.StatusUnauthorized {
		t.Errorf("pulling without a login: %d, %v", status, err)
	}
	apply(t, "default", `{apiVersion: v1, kind: Pod, metadata: {name: pull}, spec: {containers: [{name: c, image: "`+
		reference+`"}]}}`)
	defer kubectl(t, "delete", "pod", "pull", "--now")
	eventually(t, "the node may not pull without a Secret", func() bool {
		return strings.Contains(kubectl(t, "get", "pod", "pull", "-o=jsonpath={.status.containerStatuses[0].state.waiting}"),
			"no basic auth credentials")
	})
}
