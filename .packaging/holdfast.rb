# A Homebrew formula, to be copied into a tap for a release.
class Holdfast < Formula
  include Language::Python::Virtualenv

  desc "Full-screen terminal agent that never loses work"
  homepage "https://github.com/holdfast-agent/holdfast"
  # By tag: the archive's checksum is known only once the tag is there.
  url "https://github.com/holdfast-agent/holdfast.git", tag: "v1.0.0"
  license "MIT"

  depends_on "git"
  depends_on "python@3.13"

  on_linux do
    depends_on "bubblewrap"
  end

  def install
    # All versions, each with its hashes, come from the lock of the release, as wheels: there are no
    # resources to keep in step with it.
    virtualenv_create(libexec, "python3.13")
    pip = ["python3.13", "-m", "pip", "--python=#{libexec}/bin/python", "install"]
    system(*pip, "--require-hashes", "-r", ".packaging/requirements.txt")
    system(*pip, "--no-deps", ".")
    bin.install_symlink libexec/"bin/holdfast"
    generate_completions_from_executable(bin/"holdfast", "completion")
  end

  test do
    (testpath/"README.md").write "The demo project.\n"
    assert_match version.to_s, shell_output("#{bin}/holdfast --version")
    assert_match "The demo project.",
                 shell_output("#{bin}/holdfast --practice -p 'read README.md'")
  end
end
