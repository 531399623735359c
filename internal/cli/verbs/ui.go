// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/ui"
	refusals "parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/rest"
)

func newUI(o *options) *cobra.Command {
	noOpen, port := false, uint16(0)
	cmd := &cobra.Command{
		Use:     "ui [CHAT]",
		Aliases: []string{"open"},
		Short:   "Open the page in a browser",
		Long: "Serves the page on this machine and opens it in a browser, until ctrl-C. The page may do what you may. Your " +
			"token stays with the plug-in: the browser gets a key for this server alone, and the link opens the page once.",
		Example: "  kubectl chat ui\n  kubectl chat open triage\n  kubectl chat ui triage --no-open",
		Args:    cobra.MaximumNArgs(1),
		RunE: o.connected(func(ctx context.Context, s *session, args []string) error {
			return serveUI(ctx, s, strings.Join(args, ""), port, noOpen)
		}),
	}
	cmd.Flags().BoolVar(&noOpen, "no-open", false, "print the link and open no browser")
	cmd.Flags().Uint16Var(&port, "port", 0, "the port of this machine; default: one that is free")
	return cmd
}

func serveUI(ctx context.Context, s *session, chat string, port uint16, noOpen bool) error {
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return fmt.Errorf("opening a port for the page: %w", err)
	}
	operations, _ := rest.New(rest.Options{
		Client: s.Client, Now: time.Now,
		Permit:  func(context.Context, string) (string, *refusals.Error) { return "the owner", nil },
		Refused: func(context.Context, *refusals.Error) {},
	})
	open := func(ctx context.Context, at, lastEventID string) (*http.Response, error) {
		return openStream(ctx, s.dialer, at, lastEventID)
	}
	server, err := ui.New(ui.Config{Operations: operations, Files: gatewayOf(s.dialer), Streams: open,
		Namespace: s.Namespace, Chat: chat}, listener)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "%s\n", server.URL())
	if !noOpen {
		forget, err := browse(ctx, server.URL())
		defer forget()
		if err != nil {
			fmt.Fprintf(s.ErrOut, "No browser was opened (%v): open the link yourself.\n", err)
		}
	}
	fmt.Fprintln(s.ErrOut, "The link opens the page once. The page works until you end this with ctrl-C.")
	return server.Serve(ctx, listener)
}

// browse opens a link in the browser. All users of a machine see the arguments of its programs, so the browser gets a
// file that only its owner reads, and that redirects to the link; forget removes it.
func browse(ctx context.Context, link string) (forget func(), err error) {
	dir, err := os.MkdirTemp("", "kubectl-chat-ui-")
	if err != nil {
		return func() {}, fmt.Errorf("making a directory: %w", err)
	}
	forget = func() { _ = os.RemoveAll(dir) }
	file := filepath.Join(dir, "open.html")
	redirect := fmt.Sprintf("<!doctype html><meta http-equiv=refresh content=\"0; url=%s\">\n", html.EscapeString(link))
	if err := os.WriteFile(file, []byte(redirect), 0o600); err != nil {
		return forget, fmt.Errorf("writing the link: %w", err)
	}
	words := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if words == nil {
		words = []string{"xdg-open"}
	}
	opener := exec.CommandContext(ctx, words[0], append(words[1:], file)...)
	if err := opener.Start(); err != nil {
		return forget, fmt.Errorf("running %s: %w", words[0], err)
	}
	go func() { _ = opener.Wait() }() // The link is printed in any case.
	return forget, nil
}

// gatewayOf passes requests on to the gateway, which reaches object storage and workspaces, with the token of the
// caller.
func gatewayOf(dialer *cluster.Dialer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := *dialer
		caller.AsCaller = true
		gateway, err := caller.Dial(r.Context())
		if err != nil {
			(&refusals.Error{Status: http.StatusBadGateway, Reason: refusals.ArchiveUnavailable,
				Message: err.Error()}).Write(w)
			return
		}
		defer gateway.Close()
		proxy := &httputil.ReverseProxy{Transport: gateway.Way.HTTP.Transport, Rewrite: func(p *httputil.ProxyRequest) {
			to, _ := url.Parse(gateway.Way.URL) // Dial has parsed it.
			p.SetURL(to)
			p.Out.Header.Del("Origin") // That of this server, which has checked it.
		}}
		proxy.ServeHTTP(w, r)
	})
}

// openStream asks the gateway for a stream, and closes the connection to the gateway when ctx is done. Refusals are
// answers.
func openStream(ctx context.Context, dialer *cluster.Dialer, at, lastEventID string) (*http.Response, error) {
	gateway, err := dialer.DialStream(ctx)
	switch {
	case errors.Is(err, cluster.ErrNoToken):
		return nil, &refusals.Error{Status: http.StatusForbidden, Reason: refusals.Forbidden, Message: err.Error() +
			" that may get chats/stream, and list and watch chats, and start kubectl chat ui again; what you do is still " +
			"done as yourself"}
	case err != nil:
		return nil, err
	}
	context.AfterFunc(ctx, gateway.Close)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(gateway.Way.URL, "/")+at, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the gateway: %w", err)
	}
	if lastEventID != "" {
		request.Header.Set("Last-Event-ID", lastEventID)
	}
	answer, err := gateway.Way.HTTP.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the gateway: %w", cluster.Explain(err))
	}
	if answer.StatusCode == http.StatusUnauthorized { // The page opens another stream, which has a new token.
		return nil, errors.Join(errors.New("asking the gateway: it no longer accepts the token"), answer.Body.Close())
	}
	return answer, nil
}
