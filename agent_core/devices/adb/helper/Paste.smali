# Run a command on an Android phone while its clipboard holds a text; then put the clipboard back.
#
#   CLASSPATH=phonedesk-paste-DIGEST.jar app_process / phonedesk.Paste TEXT MILLISECONDS COMMAND
#
# TEXT is UTF-8 in base64. COMMAND is a line of shell that pastes, such as "input keyevent 279". MILLISECONDS is how
# long the app may take to fetch the text after the command has ended; then the clipboard is what it was before, or
# empty if that cannot be read.
#
# The exit status is the command's. Status 70 means that the command was not run, because the clipboard did not take
# the text; the reason is on standard error. The last line of output is "phonedesk-paste: done" if the command was run.
#
# It is run by the user "shell", whose package com.android.shell may use the clipboard in the background.
# android.content.IClipboard is no public API: its methods have two to seven parameters, depending on the version
# and the maker. They are filled in by their types, so every known version of them can be called.

.class public final Lphonedesk/Paste;
.super Ljava/lang/Object;


# Call the clipboard's method of this name and return its result.
# p0: the service. p1: the name. p2: what a parameter of the type ClipData gets.
.method private static call(Ljava/lang/Object;Ljava/lang/String;Landroid/content/ClipData;)Ljava/lang/Object;
    .registers 13

    # Look for the method in the interface: the object itself is a proxy of a class that is not public.
    const-string v0, "android.content.IClipboard"
    invoke-static {v0}, Ljava/lang/Class;->forName(Ljava/lang/String;)Ljava/lang/Class;
    move-result-object v0
    invoke-virtual {v0}, Ljava/lang/Class;->getMethods()[Ljava/lang/reflect/Method;
    move-result-object v0
    array-length v1, v0
    const/4 v2, 0x0

    :next_method
    if-ge v2, v1, :no_method
    aget-object v3, v0, v2
    invoke-virtual {v3}, Ljava/lang/reflect/Method;->getName()Ljava/lang/String;
    move-result-object v4
    invoke-virtual {v4, p1}, Ljava/lang/String;->equals(Ljava/lang/Object;)Z
    move-result v4
    if-nez v4, :found
    add-int/lit8 v2, v2, 0x1
    goto :next_method

    :no_method
    new-instance v0, Ljava/lang/NoSuchMethodException;
    invoke-direct {v0, p1}, Ljava/lang/NoSuchMethodException;-><init>(Ljava/lang/String;)V
    throw v0

    # v3: the method. Fill v5 from the types in v4; v7 is the package until the first String has taken it.
    :found
    invoke-virtual {v3}, Ljava/lang/reflect/Method;->getParameterTypes()[Ljava/lang/Class;
    move-result-object v4
    array-length v1, v4
    new-array v5, v1, [Ljava/lang/Object;
    const-string v7, "com.android.shell"
    const/4 v2, 0x0

    :next_type
    if-ge v2, v1, :filled
    aget-object v6, v4, v2

    const-class v0, Ljava/lang/String;
    if-ne v6, v0, :not_string
    aput-object v7, v5, v2
    const/4 v7, 0x0    # further strings are attribution tags, which may be null
    goto :typed

    :not_string
    const-class v0, Landroid/content/ClipData;
    if-ne v6, v0, :not_clip
    aput-object p2, v5, v2
    goto :typed

    :not_clip
    sget-object v0, Ljava/lang/Boolean;->TYPE:Ljava/lang/Class;
    if-ne v6, v0, :not_boolean
    sget-object v0, Ljava/lang/Boolean;->FALSE:Ljava/lang/Boolean;
    aput-object v0, v5, v2
    goto :typed

    # The owner's user and the phone's own display are both 0.
    :not_boolean
    const/4 v0, 0x0
    invoke-static {v0}, Ljava/lang/Integer;->valueOf(I)Ljava/lang/Integer;
    move-result-object v0
    aput-object v0, v5, v2

    :typed
    add-int/lit8 v2, v2, 0x1
    goto :next_type

    :filled
    invoke-virtual {v3, p0, v5}, Ljava/lang/reflect/Method;->invoke(Ljava/lang/Object;[Ljava/lang/Object;)Ljava/lang/Object;
    move-result-object v0
    return-object v0
.end method


# Return what the clipboard holds, null if it is empty or may not be read.
.method private static held(Ljava/lang/Object;)Landroid/content/ClipData;
    .registers 4

    :try_start
    const-string v0, "getPrimaryClip"
    const/4 v1, 0x0
    invoke-static {p0, v0, v1}, Lphonedesk/Paste;->call(Ljava/lang/Object;Ljava/lang/String;Landroid/content/ClipData;)Ljava/lang/Object;
    move-result-object v0
    check-cast v0, Landroid/content/ClipData;
    :try_end
    .catch Ljava/lang/Exception; {:try_start .. :try_end} :unreadable
    return-object v0

    :unreadable
    move-exception v0
    const/4 v0, 0x0
    return-object v0
.end method


# Put a clip into the clipboard.
.method private static put(Ljava/lang/Object;Landroid/content/ClipData;)V
    .registers 3

    const-string v0, "setPrimaryClip"
    invoke-static {p0, v0, p1}, Lphonedesk/Paste;->call(Ljava/lang/Object;Ljava/lang/String;Landroid/content/ClipData;)Ljava/lang/Object;
    return-void
.end method


# Return whether a clip is this text. Some makers take a text and keep another, or none.
.method private static holds(Landroid/content/ClipData;Ljava/lang/String;)Z
    .registers 4

    const/4 v1, 0x0
    if-eqz p0, :no
    invoke-virtual {p0}, Landroid/content/ClipData;->getItemCount()I
    move-result v0
    if-eqz v0, :no
    invoke-virtual {p0, v1}, Landroid/content/ClipData;->getItemAt(I)Landroid/content/ClipData$Item;
    move-result-object v0
    invoke-virtual {v0}, Landroid/content/ClipData$Item;->getText()Ljava/lang/CharSequence;
    move-result-object v0
    if-eqz v0, :no
    invoke-interface {v0}, Ljava/lang/CharSequence;->toString()Ljava/lang/String;
    move-result-object v0
    invoke-virtual {p1, v0}, Ljava/lang/String;->equals(Ljava/lang/Object;)Z
    move-result v0
    return v0

    :no
    return v1
.end method


# Run a line of shell, print what it prints, and return its exit status.
.method private static run(Ljava/lang/String;)I
    .registers 6

    const/4 v0, 0x3
    new-array v0, v0, [Ljava/lang/String;
    const/4 v1, 0x0
    const-string v2, "sh"
    aput-object v2, v0, v1
    const/4 v1, 0x1
    const-string v2, "-c"
    aput-object v2, v0, v1
    const/4 v1, 0x2
    aput-object p0, v0, v1
    new-instance v1, Ljava/lang/ProcessBuilder;
    invoke-direct {v1, v0}, Ljava/lang/ProcessBuilder;-><init>([Ljava/lang/String;)V
    const/4 v0, 0x1
    invoke-virtual {v1, v0}, Ljava/lang/ProcessBuilder;->redirectErrorStream(Z)Ljava/lang/ProcessBuilder;
    invoke-virtual {v1}, Ljava/lang/ProcessBuilder;->start()Ljava/lang/Process;
    move-result-object v0
    invoke-virtual {v0}, Ljava/lang/Process;->getInputStream()Ljava/io/InputStream;
    move-result-object v1
    sget-object v2, Ljava/lang/System;->out:Ljava/io/PrintStream;

    :more
    invoke-virtual {v1}, Ljava/io/InputStream;->read()I
    move-result v3
    if-ltz v3, :ended
    invoke-virtual {v2, v3}, Ljava/io/PrintStream;->write(I)V
    goto :more

    :ended
    invoke-virtual {v0}, Ljava/lang/Process;->waitFor()I
    move-result v0
    return v0
.end method


# Put back what the clipboard held before; an empty text if there was nothing, or nothing that could be read.
.method private static restore(Ljava/lang/Object;Landroid/content/ClipData;)V
    .registers 4

    if-nez p1, :known
    const-string v0, ""
    invoke-static {v0, v0}, Landroid/content/ClipData;->newPlainText(Ljava/lang/CharSequence;Ljava/lang/CharSequence;)Landroid/content/ClipData;
    move-result-object p1

    :known
    invoke-static {p0, p1}, Lphonedesk/Paste;->put(Ljava/lang/Object;Landroid/content/ClipData;)V
    return-void
.end method


# Do it, and return the exit status.
.method private static paste([Ljava/lang/String;)I
    .registers 9

    # v0: the text.
    const/4 v3, 0x0
    aget-object v1, p0, v3
    invoke-static {v1, v3}, Landroid/util/Base64;->decode(Ljava/lang/String;I)[B
    move-result-object v1
    new-instance v0, Ljava/lang/String;
    const-string v2, "UTF-8"
    invoke-direct {v0, v1, v2}, Ljava/lang/String;-><init>([BLjava/lang/String;)V

    # v4: how long to wait.
    const/4 v3, 0x1
    aget-object v1, p0, v3
    invoke-static {v1}, Ljava/lang/Long;->parseLong(Ljava/lang/String;)J
    move-result-wide v4

    # v1: the clipboard. v2: what it held before.
    const-string v1, "clipboard"
    invoke-static {v1}, Landroid/os/ServiceManager;->getService(Ljava/lang/String;)Landroid/os/IBinder;
    move-result-object v1
    invoke-static {v1}, Landroid/content/IClipboard$Stub;->asInterface(Landroid/os/IBinder;)Landroid/content/IClipboard;
    move-result-object v1
    invoke-static {v1}, Lphonedesk/Paste;->held(Ljava/lang/Object;)Landroid/content/ClipData;
    move-result-object v2

    invoke-static {v0, v0}, Landroid/content/ClipData;->newPlainText(Ljava/lang/CharSequence;Ljava/lang/CharSequence;)Landroid/content/ClipData;
    move-result-object v3
    invoke-static {v1, v3}, Lphonedesk/Paste;->put(Ljava/lang/Object;Landroid/content/ClipData;)V

    # From here on the clipboard is put back in every outcome.
    :try_start
    invoke-static {v1}, Lphonedesk/Paste;->held(Ljava/lang/Object;)Landroid/content/ClipData;
    move-result-object v3
    invoke-static {v3, v0}, Lphonedesk/Paste;->holds(Landroid/content/ClipData;Ljava/lang/String;)Z
    move-result v3
    if-eqz v3, :not_held
    const/4 v3, 0x2
    aget-object v3, p0, v3
    invoke-static {v3}, Lphonedesk/Paste;->run(Ljava/lang/String;)I
    move-result v3
    invoke-static {v4, v5}, Ljava/lang/Thread;->sleep(J)V
    :try_end
    .catchall {:try_start .. :try_end} :failed

    invoke-static {v1, v2}, Lphonedesk/Paste;->restore(Ljava/lang/Object;Landroid/content/ClipData;)V
    sget-object v0, Ljava/lang/System;->out:Ljava/io/PrintStream;
    const-string v1, "phonedesk-paste: done"
    invoke-virtual {v0, v1}, Ljava/io/PrintStream;->println(Ljava/lang/String;)V
    return v3

    :not_held
    invoke-static {v1, v2}, Lphonedesk/Paste;->restore(Ljava/lang/Object;Landroid/content/ClipData;)V
    new-instance v0, Ljava/lang/SecurityException;
    const-string v1, "the clipboard does not hold the text"
    invoke-direct {v0, v1}, Ljava/lang/SecurityException;-><init>(Ljava/lang/String;)V
    throw v0

    # The command may have been run: this is no refusal of the clipboard.
    :failed
    move-exception v3
    invoke-static {v1, v2}, Lphonedesk/Paste;->restore(Ljava/lang/Object;Landroid/content/ClipData;)V
    new-instance v0, Ljava/lang/IllegalStateException;
    const-string v1, "the command failed"
    invoke-direct {v0, v1, v3}, Ljava/lang/IllegalStateException;-><init>(Ljava/lang/String;Ljava/lang/Throwable;)V
    throw v0
.end method


.method public static main([Ljava/lang/String;)V
    .registers 4

    :try_start
    invoke-static {p0}, Lphonedesk/Paste;->paste([Ljava/lang/String;)I
    move-result v0
    :try_end
    .catch Ljava/lang/IllegalStateException; {:try_start .. :try_end} :failed
    .catch Ljava/lang/Throwable; {:try_start .. :try_end} :refused
    goto :exit

    :failed
    move-exception v1
    const/16 v0, 0x47
    goto :say

    :refused
    move-exception v1
    const/16 v0, 0x46

    :say
    invoke-virtual {v1}, Ljava/lang/Throwable;->printStackTrace()V

    # A service's threads would keep the process alive.
    :exit
    sget-object v1, Ljava/lang/System;->out:Ljava/io/PrintStream;
    invoke-virtual {v1}, Ljava/io/PrintStream;->flush()V
    invoke-static {v0}, Ljava/lang/System;->exit(I)V
    return-void
.end method
