package io.entresol.collections;

/** An employee as programs declare one: a name and a number that stay, and fields that change. */
@Persistent
interface Staff {
    String name();

    int number();

    long getSalary();

    void setSalary(long salary);

    Staff boss();

    void boss(Staff boss);

    boolean isRemote();

    void setRemote(boolean remote);

    PersistentArray<String> skills();

    void skills(PersistentArray<String> skills);

    Double share();

    void share(Double share);

    default long twice() {
        return 2 * getSalary();
    }
}
